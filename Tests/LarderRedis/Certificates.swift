import Foundation
import LarderTestSupport

/// An authority and what it has signed, made by the command `openssl` for one test.
final class Certificates: Sendable {
    /// A certificate with its key.
    struct Certificate: Sendable { let file, key: URL }

    static let tool = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private let folder: TemporaryFolder
    /// The certificate of the authority.
    var authority: URL { file("ca.pem") }
    /// The list of what the authority has revoked.
    var revocations: URL { file("crl.pem") }

    init() throws {
        folder = try TemporaryFolder()
        let configuration = """
            [ca]
            default_ca = own
            [own]
            database = index.txt
            new_certs_dir = .
            serial = serial
            default_md = sha256
            default_days = 30
            default_crl_days = 30
            policy = any
            copy_extensions = copy
            unique_subject = no
            certificate = ca.pem
            private_key = ca.key
            [any]
            commonName = supplied
            """
        try Data(configuration.utf8).write(to: file("ca.cnf"))
        try Data().write(to: file("index.txt"))
        try Data("01\n".utf8).write(to: file("serial"))
        try run(["req", "-x509", "-days", "30", "-out", "ca.pem"] + key("ca") + ["-subj", "/CN=authority"])
    }

    /// Signs a certificate for names such as `DNS:localhost`.
    func make(_ name: String, for names: String, isExpired: Bool = false) throws -> Certificate {
        try run(
            ["req", "-new", "-out", "\(name).csr"] + key(name) + ["-subj", "/CN=\(name)"]
                + ["-addext", "subjectAltName=\(names)"])
        let dates = isExpired ? ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"] : []
        try run(
            ["ca", "-batch", "-config", "ca.cnf", "-notext", "-in", "\(name).csr", "-out", "\(name).pem"] + dates)
        return Certificate(file: file("\(name).pem"), key: file("\(name).key"))
    }

    /// Signs a certificate whose key has a password.
    func makeLocked(_ name: String) throws -> Certificate {
        let plain = try make(name, for: "DNS:\(name)")
        try run(["ec", "-in", "\(name).key", "-out", "\(name).locked", "-aes256", "-passout", "pass:secret"])
        return Certificate(file: plain.file, key: file("\(name).locked"))
    }

    /// Revokes a certificate, and writes the list of those that are.
    func revoke(_ name: String) throws {
        try run(["ca", "-config", "ca.cnf", "-revoke", "\(name).pem"])
        try run(["ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.pem"])
    }

    private func file(_ name: String) -> URL { folder.url.appendingPathComponent(name) }

    private func key(_ name: String) -> [String] {
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "\(name).key"]
    }

    private func run(_ words: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.tool ?? "")
        (process.arguments, process.currentDirectoryURL) = (words, folder.url)
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 { throw Failure(words: words) }
    }

    private struct Failure: Error { let words: [String] }
}

/// The server of the command `openssl`, which speaks TLS and nothing else.
final class TLSServer: Sendable {
    let port: Int
    private let process = Process()
    private let folder: TemporaryFolder

    init(_ certificate: Certificates.Certificate, _ words: [String] = []) throws {
        folder = try TemporaryFolder()
        port = try RealServer.freePort()
        let log = folder.url.appendingPathComponent("log")
        try Data().write(to: log)
        process.executableURL = URL(fileURLWithPath: Certificates.tool ?? "")
        process.arguments =
            ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.file.path, "-key", certificate.key.path]
            + words
        process.standardInput = Pipe()
        process.standardOutput = try FileHandle(forWritingTo: log)
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    // By a signal that no thread can have blocked for its children.
    deinit { _ = Foundation.kill(process.processIdentifier, SIGKILL) }

    /// What it has said of its connections.
    var log: String {
        get throws { try String(contentsOf: folder.url.appendingPathComponent("log"), encoding: .utf8) }
    }
}
