internal import Foundation
internal import Larder
internal import LarderLocks

/// The connection on which scripts are run.
final class RedisCalls: Sendable {
    /// What the greeting has loaded, and who is told of a new connection.
    private final class Greeting: Sendable {
        /// The names of the scripts on the server.
        let names = Mutex<[Data]>([])
        let onConnection = Mutex<(@Sendable () -> Void)?>(nil)
        /// What the server has said of scripts that it refuses.
        let said = Mutex<[RedisScripts: String]>([:])
    }

    let link: RedisLink
    /// A text that no other node has.
    let node = UUID().uuidString
    let prefix: String
    private let streamLimit: Int
    private let greeting: Greeting
    private let spaces = RedisSpaces()
    private let epochs = Atomic(0)
    private let tokens = Atomic(0)
    /// The scripts in a row that the server has refused.
    private let refusals = Atomic(0)

    /// The refusals in a row after which the connection is made again, whatever the server has said.
    private static let refusalLimit = 3

    init(_ address: RedisAddress, _ prefix: String, _ timeout: Duration, streamLimit: Int) throws {
        let greeting = Greeting()
        var options = RedisLink.Options()
        options.timeout = timeout
        options.greeting = { _ in
            [Self.words(["ROLE"])] + RedisScripts.allCases.map { Self.words(["SCRIPT", "LOAD", $0.text]) }
        }
        options.greeted = { _, replies in
            if case .array(let role?)? = replies.first, let role = role.first?.text, role != "master" {
                return "The server is a replica, which cannot write."
            }
            let names = replies.dropFirst().map { $0.data }
            for case .error(let message) in replies.dropFirst() { return "The server says: \(message)" }
            greeting.said.withLock { $0 = [:] }
            greeting.names.withLock { $0 = names.map { $0 ?? Data() } }
            // Messages have to come from the same server.
            greeting.onConnection.withLock { $0 }?()
            return nil
        }
        (self.greeting, self.prefix, self.streamLimit) = (greeting, prefix, max(100, streamLimit))
        link = try RedisLink(address, options)
    }

    /// Returns a text that no other lease has.
    func token() -> String { "\(node)-\(tokens.add(1, ordering: .relaxed).newValue)" }

    /// Calls a closure for each new connection, before it is used.
    func onConnection(_ body: @escaping @Sendable () -> Void) { greeting.onConnection.withLock { $0 = body } }

    /// What the server has said of a script that it refuses; nil if there is none.
    var refusal: String? { greeting.said.withLock { $0.min { $0.key.rawValue < $1.key.rawValue }?.value } }

    /// Returns the name of a part of a cache on the server.
    func name(_ part: String, _ space: SharedSpace) -> Data { Data("\(prefix):{\(space.name)}:\(part)".utf8) }

    /// Runs a script on the connection that there is.
    ///
    /// - Parameters:
    ///   - keys: The names of the entries, leases and marks that the script works on.
    ///   - words: The words that the script gets.
    func run(
        _ script: RedisScripts, in space: SharedSpace, _ keys: [Data], _ words: [Data]
    ) async throws -> RESPValue {
        guard let connection = link.connection else { throw unavailable() }
        for _ in 0..<2 {
            let session = try await session(on: connection, in: space)
            let reply = try await send(script, in: space, keys, words, session, on: connection)
            if reply.text != "late" { return reply }
            // The server has forgotten this node, and is told again.
            spaces.end(session, in: space.name)
        }
        throw RedisTier.Failure(description: "The server has forgotten this node.")
    }

    // MARK: What the server has confirmed

    /// Notes a message whose place in the stream this node knows.
    func note(_ id: String, in space: SharedSpace) { spaces.note(id, in: space.name) }

    /// A Boolean value that indicates whether the server has lost what it had confirmed, and no node was told.
    func hasLoss(in space: SharedSpace) -> Bool { spaces.hasLoss(in: space.name) }

    /// Returns whether the server has lost what it had confirmed, once for each time.
    func takeLoss(in space: SharedSpace) -> Bool { spaces.takeLoss(in: space.name) }

    /// Asks the server for the last message that this node knows, on each connection once, before anything else.
    ///
    /// If the message is missing, and not because there were too many, the server is back at an earlier moment. Then it begins a
    /// new epoch, in which no entry from before counts.
    func prepare(_ space: SharedSpace) async throws {
        guard let connection = link.connection else { throw unavailable() }
        _ = try await session(on: connection, in: space)
    }

    private func session(on connection: Int, in space: SharedSpace) async throws -> String {
        if let session = spaces.session(on: connection, in: space.name, on: Self.today) { return session }
        return try await check(spaces.known(in: space.name), in: space, on: connection).session
    }

    /// Looks for a message that is missing in the stream of a cache, and returns whether the server has lost it.
    func check(_ id: String, in space: SharedSpace) async throws -> Bool {
        guard let connection = link.connection else { throw unavailable() }
        return try await check(id, in: space, on: connection).isLost
    }

    private func check(
        _ id: String, in space: SharedSpace, on connection: Int
    ) async throws -> (session: String, isLost: Bool) {
        let day = Self.today
        let session = "\(connection) \(day)"
        let reply = try await send(.check, in: space, [], Self.words([id, "\(day)"]), session, on: connection)
        guard let found = reply.text, ["yes", "gone", "lost"].contains(found) else {
            link.drop(connection)
            throw RedisTier.Failure(description: "The server has given a reply of another kind.")
        }
        spaces.begin(
            session, on: connection, in: space.name, on: day, gone: found == "yes" ? nil : id,
            hasLostWrites: found == "lost")
        await noteUse(of: space, on: day)
        return (session, found == "lost")
    }

    /// The days since 1970.
    private static var today: Int { Int(SystemClock.now() / 86_400_000) }

    /// Notes the day of the last use of a cache, and deletes the facts and messages of caches that no node has used for four
    /// weeks, such as those of earlier versions.
    ///
    /// What fails here is done another time.
    private func noteUse(of space: SharedSpace, on day: Int) async {
        let all = Data("\(prefix):spaces".utf8)
        do {
            _ = try await link.call(Self.words(["HSET"]) + [all] + Self.words([space.name, "\(day)"]))
            guard case .array(let values?) = try await link.call(Self.words(["HGETALL"]) + [all]) else { return }
            for index in stride(from: 0, to: values.count - 1, by: 2) {
                guard let name = values[index].text, let last = values[index + 1].text.flatMap({ Int($0) }),
                    last + 28 < day
                else { continue }
                let unused = SharedSpace(name)
                let parts = ["meta", "stream", "nodes"].map { self.name($0, unused) }
                _ = try await link.call(Self.words(["DEL"]) + parts)
                _ = try await link.call(Self.words(["HDEL"]) + [all] + Self.words([name]))
            }
        } catch {}
    }

    // MARK: Sending

    private func send(
        _ script: RedisScripts, in space: SharedSpace, _ keys: [Data], _ words: [Data], _ session: String,
        on connection: Int
    ) async throws -> RESPValue {
        let known = greeting.names.withLock { $0.indices.contains(script.rawValue) ? $0[script.rawValue] : nil }
        guard let known else { throw unavailable() }
        let keys = ["meta", "stream", "nodes"].map { name($0, space) } + keys
        let epoch = "\(node) \(epochs.add(1, ordering: .relaxed).newValue)"
        let arguments = Self.words([session, epoch, node, "\(streamLimit)"]) + words
        let call = Self.words(["EVALSHA"]) + [known] + Self.words(["\(keys.count)"]) + keys + arguments
        do {
            let reply: RESPValue
            do {
                reply = try await link.call(call, on: connection)
            } catch RedisFault.refused(let message) where message.contains("NOSCRIPT") {
                _ = try await link.call(Self.words(["SCRIPT", "LOAD", script.text]), on: connection)
                reply = try await link.call(call, on: connection)
            }
            refusals.store(0, ordering: .relaxed)
            noteAccepted(script, reply)
            return reply
        } catch RedisFault.refused(let message) {
            greeting.said.withLock { $0[script] = message }
            // Another server may have taken the place of this one. Redis 6 has its reason inside of the text.
            let isOfServer = ["NOAUTH", "READONLY", "MASTERDOWN"].contains(where: message.contains)
            // No other connection would change these.
            let isOfState = ["OOM", "NOREPLICAS", "MISCONF", "NOPERM", "BUSY"].contains(where: message.contains)
            let isOneOfMany = !isOfState && refusals.add(1, ordering: .relaxed).newValue >= Self.refusalLimit
            if isOfServer || isOneOfMany {
                refusals.store(0, ordering: .relaxed)
                link.drop(connection)
            }
            throw SharedRefusal("The server says: \(message)")
        } catch RedisFault.lost {
            throw RedisTier.Failure(description: "The connection was lost, or the reply has not come in time.")
        } catch RedisFault.unavailable {
            throw unavailable()
        }
    }

    /// Forgets what was said of a script that is accepted.
    ///
    /// A full server takes removals, and gives what it has.
    private func noteAccepted(_ script: RedisScripts, _ reply: RESPValue) {
        greeting.said.withLock { said in
            if said.isEmpty { return }
            if script == .store { for other in [RedisScripts.fetch, .renew] { said[other] = nil } }
            if case .array(let parts?) = reply, script == .fetch, parts.first?.text != "lease" { return }
            said[script] = nil
        }
    }

    func dropConnection() { if let connection = link.connection { link.drop(connection) } }

    private func unavailable() -> RedisTier.Failure {
        RedisTier.Failure(description: "There is no connection. \(link.failure ?? "It is being made.")")
    }

    static func words(_ texts: [String]) -> [Data] { texts.map { Data($0.utf8) } }
}
