import Foundation

/// A server of this program, and what a program without Larder asks of it.
final class RawServer {
    static let path = ["/usr/bin/redis-server", "/usr/bin/valkey-server", "/opt/homebrew/bin/redis-server"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private let process = Process()
    private let port = Int.random(in: 20_000..<30_000)
    lazy var client = RawClient(port)
    private lazy var reader = RawClient(port)

    var url: String { "redis://127.0.0.1:\(port)" }
    /// The same server, encrypted.
    var secureURL: String { "rediss://localhost:\(port + 10_000)" }
    /// The certificate of the server, which is its own authority.
    let certificate: URL

    init(_ path: String) {
        certificate = Workplace.path().appendingPathExtension("pem")
        let key = certificate.appendingPathExtension("key").path
        let maker = Process()
        maker.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        maker.arguments =
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days"]
            + ["9", "-subj", "/CN=bench", "-addext", "subjectAltName=DNS:localhost"]
            + ["-keyout", key, "-out", certificate.path]
        maker.standardError = FileHandle.nullDevice
        do { try maker.run() } catch { preconditionFailure("\(error)") }
        maker.waitUntilExit()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        if maker.terminationStatus == 0 {
            process.arguments? +=
                ["--tls-port", "\(port + 10_000)", "--tls-cert-file", certificate.path, "--tls-key-file", key]
                + ["--tls-ca-cert-file", certificate.path, "--tls-auth-clients", "no"]
        }
        process.standardOutput = FileHandle.nullDevice
        do { try process.run() } catch { preconditionFailure("\(error)") }
        RawServer.started = process.processIdentifier
        atexit { kill(RawServer.started, SIGKILL) }
    }

    nonisolated(unsafe) private static var started: Int32 = 0

    /// Microseconds from a message to its reader, which waits for it, of which a share took no longer.
    func messages(_ count: Int, _ share: Double) -> Double {
        var times: [Double] = []
        _ = client.call(["XADD", "raw", "*", "k", "v"])
        for _ in 0..<count {
            reader.send(["XREAD", "BLOCK", "0", "STREAMS", "raw", "$"])
            // The reader has to be waiting.
            poll(nil, 0, 1)
            let start = ContinuousClock.now
            client.send(["XADD", "raw", "*", "k", "v"])
            reader.receive(1)
            times.append((ContinuousClock.now - start) / .microseconds(1))
            client.receive(1)
        }
        return times.sorted()[min(count - 1, Int(Double(count) * share))]
    }
}

/// A blocking connection.
final class RawClient {
    private let socket: Int32
    init(_ port: Int) {
        while true {
            #if canImport(Glibc)
            let socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #else
            let socket = Foundation.socket(AF_INET, SOCK_STREAM, 0)
            #endif
            var address = sockaddr_in()
            (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7F00_0001).bigEndian)
            address.sin_port = UInt16(port).bigEndian
            let isConnected = withUnsafePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            if isConnected {
                var yes: Int32 = 1
                setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
                self.socket = socket
                return
            }
            close(socket)
            poll(nil, 0, 10)
        }
    }

    func send(_ words: [String]) { write(command(words)) }

    func call(_ words: [String]) -> Int {
        send(words)
        return receive(1)
    }

    /// Nanoseconds per command of commands that are sent so many at once; what is got was set.
    func time(_ name: String, _ count: Int, batch: Int, size: Int = 300) -> Double {
        if name == "GET" { _ = time("SET", count, batch: batch, size: size) }
        let value = String(repeating: "x", count: size)
        let batches = stride(from: 0, to: count, by: batch).map { first in
            (first..<min(first + batch, count)).reduce(into: [UInt8]()) { bytes, key in
                bytes += command(name == "SET" ? ["SET", "raw\(key)", value] : ["GET", "raw\(key)"])
            }
        }
        return nanoseconds(per: count) {
            for bytes in batches {
                write(bytes)
                receive(batch)
            }
        }
    }

    private func command(_ words: [String]) -> [UInt8] {
        Array(("*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()).utf8)
    }

    private func write(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, 0) }
            precondition(count > 0, "The server is gone.")
            sent += count
        }
    }

    /// Reads replies, whose lines are counted: a status or number has one, a string two, and an entry of a stream fourteen.
    @discardableResult
    func receive(_ count: Int) -> Int {
        var (replies, rest, bytes) = (0, [UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while replies < count {
            let size = recv(socket, &bytes, bytes.count, 0)
            precondition(size > 0, "The server is gone.")
            rest += bytes.prefix(size)
            while let end = reply(rest) {
                rest.removeFirst(end)
                replies += 1
            }
        }
        return replies
    }

    /// Returns the length of the first reply; nil if it is not whole.
    private func reply(_ bytes: [UInt8], _ start: Int = 0) -> Int? {
        guard let end = bytes[start...].firstIndex(of: 10) else { return nil }
        let number = Int(String(decoding: bytes[(start + 1)..<(end - 1)], as: UTF8.self)) ?? 0
        switch bytes[start] {
        case UInt8(ascii: "$"): return number < 0 ? end + 1 : end + number + 3 <= bytes.count ? end + number + 3 : nil
        case UInt8(ascii: "*"):
            var next = end + 1
            for _ in 0..<max(0, number) {
                guard next < bytes.count, let after = reply(bytes, next) else { return nil }
                next = after
            }
            return next
        default: return end + 1
        }
    }
}
