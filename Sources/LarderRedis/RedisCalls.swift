internal import Foundation
internal import LarderLocks

/// The connection on which scripts are run.
final class RedisCalls: Sendable {
    /// The names of the scripts on the server, which the greeting has loaded.
    private final class Names: Sendable {
        let names = Mutex<[Data]>([])
    }

    let link: RedisLink
    /// A text that no other node has.
    let node = UUID().uuidString
    private let session: Data
    private let streamLimit: Int
    private let names: Names

    init(_ address: RedisAddress, _ prefix: String, _ timeout: Duration, streamLimit: Int) throws {
        let (session, names) = (Data("\(prefix):session:\(node)".utf8), Names())
        var options = RedisLink.Options()
        options.timeout = timeout
        options.greeting = { connection in
            [[Data("SET".utf8), session] + Self.words(["\(connection)", "PX", "\(28 * 86_400_000)"])]
                + RedisScripts.allCases.map { Self.words(["SCRIPT", "LOAD", $0.text]) }
        }
        options.greeted = { _, replies in names.names.withLock { $0 = replies.dropFirst().map { $0.data ?? Data() } } }
        (self.session, self.names, self.streamLimit) = (session, names, max(100, streamLimit))
        link = try RedisLink(address, options)
    }

    /// Runs a script on the connection that there is.
    ///
    /// - Parameters:
    ///   - first: The names of the facts and messages of a cache.
    ///   - keys: The names of the entries, leases and marks that the script works on.
    ///   - words: The words that the script gets.
    func run(_ script: RedisScripts, _ first: [Data], _ keys: [Data], _ words: [Data]) async throws -> RESPValue {
        let name = names.names.withLock { $0.indices.contains(script.rawValue) ? $0[script.rawValue] : nil }
        guard let connection = link.connection, let name else { throw unavailable() }
        let keys = first + [session] + keys
        let arguments = Self.words(["\(connection)", UUID().uuidString, node, "\(streamLimit)"]) + words
        do {
            let reply = try await link.call(
                Self.words(["EVALSHA"]) + [name] + Self.words(["\(keys.count)"]) + keys + arguments, on: connection)
            guard reply.text == "late" else { return reply }
            // The server has forgotten this connection, or has a later one: the next greeting tells it.
            link.drop(connection)
            throw RedisTier.Failure(description: "The server has forgotten the connection.")
        } catch RedisFault.refused(let message) {
            // Another server may have taken the place of this one.
            if ["NOSCRIPT", "NOAUTH", "READONLY", "MASTERDOWN"].contains(where: message.hasPrefix) {
                link.drop(connection)
            }
            throw RedisTier.Failure(description: "The server says: \(message)")
        } catch RedisFault.lost {
            throw RedisTier.Failure(description: "The connection was lost, or the reply has not come in time.")
        } catch RedisFault.unavailable {
            throw unavailable()
        }
    }

    func dropConnection() { if let connection = link.connection { link.drop(connection) } }

    private func unavailable() -> RedisTier.Failure {
        RedisTier.Failure(description: "There is no connection. \(link.failure ?? "It is being made.")")
    }

    static func words(_ texts: [String]) -> [Data] { texts.map { Data($0.utf8) } }
}
