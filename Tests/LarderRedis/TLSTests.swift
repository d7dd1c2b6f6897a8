import Foundation
import Larder
import LarderRedisTLS
import LarderTestSupport
import Testing

/// Encrypted connections, with servers and certificates that are real.
@Suite(
    .enabled(if: RealServer.isInstalled && Certificates.tool != nil, "redis-server or openssl is not installed"))
struct TLSTests {
    private let certificates: Certificates
    private let server: Certificates.Certificate
    /// They run as long as the test.
    private let servers = Locked<[RealServer]>([])

    init() throws {
        certificates = try Certificates()
        server = try certificates.make("server", for: "DNS:localhost,IP:127.0.0.1")
    }

    private var trusting: TLSOptions { TLSOptions(authorities: certificates.authority) }

    private func start(
        _ certificate: Certificates.Certificate? = nil, _ options: [String] = ["--tls-auth-clients", "no"]
    ) throws -> RealServer {
        let certificate = certificate ?? server
        let started = try RealServer(
            options: [
                "--save", "", "--tls-cert-file", certificate.file.path, "--tls-key-file", certificate.key.path,
                "--tls-ca-cert-file", certificates.authority.path,
            ] + options, isSecure: true)
        servers.change { $0.append(started) }
        return started
    }

    private func tier(_ server: RealServer, _ options: TLSOptions) -> RedisTier {
        RedisTier(url: server.url, prefix: "test", timeout: .seconds(120), security: .tls(options))
    }

    /// Waits until a tier says why it has no connection.
    private func expect(_ failure: String, of tier: RedisTier) async throws {
        try await Waiting.until { tier.failure != nil }
        #expect(tier.failure?.contains(failure) == true, "\(tier.failure ?? "")")
        #expect(!tier.isAvailable)
        tier.close()
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `a tier works as without, many calls at once and large values too`(version: String) async throws {
        let server = try start(nil, ["--tls-auth-clients", "no", "--tls-protocols", version])
        let security = RedisSecurity.tls(trusting)
        let (one, other) = (
            try await RedisNode(server.url, security: security), try await RedisNode(server.url, security: security)
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let value = String(repeating: "\(number)", count: number % 10 == 0 ? 100_000 : 10)
                    try await one.shared.setValue(value, forKey: "\(number)")
                    #expect(try await other.get("\(number)") == value)
                }
            }
            try await group.waitForAll()
        }
        #expect(one.tier.statistics.lost == 0 && one.tier.statistics.connections == 2)
        try await one.shared.removeAll()
        try await Waiting.until { try other.cache.count == 0 }
        server.kill()
        try await Waiting.until { !one.tier.isAvailable }
        try server.start()
        for node in [one, other] { try await node.settle() }
        try await one.shared.setValue("new", forKey: "a")
        #expect(try await other.get("a") == "new")
    }

    @Test func `a server that is not what it should be is refused with a sentence`() async throws {
        let others = try Certificates()
        let strange = try others.make("strange", for: "DNS:localhost")
        let old = try certificates.make("old", for: "DNS:localhost", isExpired: true)
        let other = try certificates.make("other", for: "DNS:example.com,IP:127.0.0.2")
        for (certificate, sentence) in [
            (strange, "of an authority that is not trusted"), (old, "has expired"), (other, "is for another host"),
        ] {
            let server = try start(certificate)
            try await expect(sentence, of: tier(server, trusting))
            var lax = trusting
            lax.check = .none
            let tier = tier(server, lax)
            try await Waiting.until { tier.isConnected }
        }
        let server = try start(other)
        var options = trusting
        options.check = .authority
        let lax = tier(server, options)
        try await Waiting.until { lax.isConnected }
        options = TLSOptions(authorities: certificates.authority, serverName: "example.com")
        let named = tier(server, options)
        try await Waiting.until { named.isConnected }
        // That of the authority is trusted nowhere else.
        try await expect("of an authority that is not trusted", of: tier(try start(), TLSOptions()))
    }

    @Test func `an address that is a number is compared with the numbers of the certificate`() async throws {
        let server = try start()
        let url = server.url.replacingOccurrences(of: "localhost", with: "127.0.0.1")
        let tier = RedisTier(url: url, prefix: "test", timeout: .seconds(120), security: .tls(trusting))
        try await Waiting.until { tier.isConnected }
        let other = try start(try certificates.make("other", for: "DNS:127.0.0.1"))
        let wrong = RedisTier(
            url: other.url.replacingOccurrences(of: "localhost", with: "127.0.0.1"), prefix: "test",
            timeout: .seconds(120), security: .tls(trusting))
        try await expect("is for another host", of: wrong)
    }

    @Test func `a server that asks for a certificate gets the node's, and refuses a wrong one`() async throws {
        let server = try start(nil, ["--tls-auth-clients", "yes"])
        try await expect("not accept the certificate of this node", of: tier(server, trusting))
        func options(_ certificate: Certificates.Certificate) -> TLSOptions {
            TLSOptions(
                authorities: certificates.authority, certificate: certificate.file, key: certificate.key)
        }
        let good = tier(server, options(try certificates.make("client", for: "DNS:client")))
        try await Waiting.until { good.isConnected }
        let others = try Certificates()
        let strange = try others.make("strange", for: "DNS:client")
        try await expect("not accept the certificate of this node", of: tier(server, options(strange)))
        let revoked = try certificates.make("revoked", for: "DNS:client")
        try certificates.revoke("revoked")
        let strict = try TLSServer(
            self.server,
            ["-Verify", "1", "-verify_return_error", "-CAfile", certificates.authority.path, "-crl_check"]
                + ["-CRL", certificates.revocations.path])
        let refused = RedisTier(
            url: "rediss://localhost:\(strict.port)", prefix: "test", timeout: .seconds(120),
            security: .tls(options(revoked)))
        // It is not there at once.
        try await Waiting.until { refused.failure?.contains("certificate revoked") == true }
        #expect(refused.failure?.contains("not accept the certificate of this node") == true)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `the next connection goes on with the session of the last one`(version: String) async throws {
        let server = try TLSServer(server, [version])
        // It does not answer, so the connection is made again and again.
        let tier = RedisTier(
            url: "rediss://localhost:\(server.port)", prefix: "test", timeout: .milliseconds(200),
            security: .tls(trusting))
        try await Waiting.until { try server.log.contains("Reused session-id") }
        tier.close()
    }

    @Test func `a session that the server refuses is offered once`() async throws {
        let server = try start(nil, ["--tls-auth-clients", "yes", "--tls-session-caching", "no"])
        let client = try certificates.make("client", for: "DNS:client")
        let options = TLSOptions(
            authorities: certificates.authority, certificate: client.file, key: client.key)
        let tier = tier(server, options)
        for count in 1...4 {
            try await Waiting.until { tier.isConnected && tier.statistics.connections >= 2 * count }
            server.kill()
            try await Waiting.until { !tier.isAvailable }
            try server.start()
        }
        tier.close()
    }

    @Test func `files that cannot be read are named`() async throws {
        let missing = URL(fileURLWithPath: "/no/such.pem")
        let server = try start()
        try await expect("The authorities in /no/such.pem", of: tier(server, TLSOptions(authorities: missing)))
        try await expect(
            "The certificate in /no/such.pem", of: tier(server, TLSOptions(certificate: missing, key: missing)))
        try await expect("give both files", of: tier(server, TLSOptions(key: missing)))
        try await expect("The name of the server is empty", of: tier(server, TLSOptions(serverName: "")))
        let locked = try certificates.makeLocked("locked")
        try await expect(
            "needs a password", of: tier(server, TLSOptions(certificate: locked.file, key: locked.key)))
        let (one, other) = (self.server, try certificates.make("other", for: "DNS:other"))
        try await expect(
            "is not that of the certificate", of: tier(server, TLSOptions(certificate: one.file, key: other.key)))
    }

    @Test func `an address and its port say whether there is TLS, and the tier whether it may be left out`()
        async throws
    {
        let (secure, plain) = (try start(), try RealServer())
        // What asks for TLS waits for an answer, and what does not answers nothing.
        func tier(_ url: String, _ security: RedisSecurity?) -> RedisTier {
            RedisTier(url: url, prefix: "test", timeout: .milliseconds(500), security: security)
        }
        try await expect("Add the product LarderRedisTLS", of: tier(secure.url, nil))
        try await expect("is given security", of: tier(plain.url, .tls(trusting)))
        try await expect(
            "speak TLS at this port", of: tier("rediss://localhost:\(plain.port)", .tls(trusting)))
        try await expect("If it asks for TLS, use rediss:", of: tier("redis://127.0.0.1:\(secure.port)", nil))
        #expect(throws: RedisTier.Failure.self) { try RedisTier(validating: secure.url, prefix: "test") }
    }
}
