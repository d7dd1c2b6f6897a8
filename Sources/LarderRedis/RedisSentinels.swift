internal import Foundation

/// Sentinels, which know the server that is the master of a name at the moment.
///
/// ```swift
/// let sentinels = RedisSentinels(["redis://10.0.0.1:26379", "redis://10.0.0.2:26379"], master: "cache")
/// let tier = RedisTier(prefix: "app", address: sentinels.address)
/// ```
///
/// They are asked in a random order, and the first one that answers decides. A tier asks whenever it connects, and leaves a server that says it is a replica.
public struct RedisSentinels: Sendable {
    private let urls: [String]
    private let master: String
    private let database: Int
    private let timeout: Duration
    private let security: RedisSecurity?

    /// Creates a source of addresses.
    ///
    /// - Parameters:
    ///   - urls: The addresses of sentinels, as in `redis://:password@host:26379`.
    ///   - master: The name under which they watch the server.
    ///   - database: The database of the server.
    ///   - timeout: The time in which a sentinel has to answer.
    ///   - security: How connections with the sentinels and the server are encrypted; then all addresses begin with `rediss:`.
    public init(
        _ urls: [String], master: String, database: Int = 0, timeout: Duration = .milliseconds(500),
        security: RedisSecurity? = nil
    ) {
        (self.urls, self.master, self.database) = (urls, master, database)
        (self.timeout, self.security) = (timeout, security)
    }

    /// Returns the address of the server, without a user or a password.
    ///
    /// - Throws: ``RedisTier/Failure`` with what each sentinel has said.
    public func address() async throws -> String {
        var failures: [String] = []
        // One that is cut off from the others may know an old master, and one that is silent costs time.
        for url in urls.shuffled() {
            do {
                let (host, port) = try await ask(url)
                let name = host.contains(":") ? "[\(host)]" : host
                return "\(security == nil ? "redis" : "rediss")://\(name):\(port)/\(database)"
            } catch let error as CancellationError {
                throw error
            } catch {
                failures.append("\(error)")
            }
        }
        throw RedisTier.Failure(
            description: "No sentinel knows the master \"\(master)\". \(failures.joined(separator: " "))")
    }

    private func ask(_ url: String) async throws -> (host: String, port: Int) {
        let address = try RedisTier.address(url, security)
        var options = RedisLink.Options()
        (options.timeout, options.security) = (timeout, security)
        let link = try RedisLink(address, options)
        defer { link.close() }
        let name = "\(address.host):\(address.port)"
        while !link.isAvailable {
            if let failure = link.failure { throw RedisTier.Failure(description: "\(name): \(failure)") }
            try await Task.sleep(for: .milliseconds(1))
        }
        do {
            let reply = try await link.call(RedisCalls.words(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]))
            guard case .array(let parts?) = reply, parts.count == 2, let host = parts[0].text,
                let port = parts[1].text.flatMap({ Int($0) })
            else { throw RedisTier.Failure(description: "\(name): It does not know this name.") }
            return (host, port)
        } catch RedisFault.refused(let message) {
            throw RedisTier.Failure(description: "\(name): It says: \(message)")
        } catch is RedisFault {
            throw RedisTier.Failure(description: "\(name): It has not answered in time.")
        }
    }
}
