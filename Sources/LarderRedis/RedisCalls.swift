internal import Foundation
internal import Larder
internal import LarderLocks

/// The connection on which scripts are run.
final class RedisCalls: Sendable {
    /// What the greeting has loaded, and who is told of a new connection.
    private struct Greeting {
        /// The names of the scripts on the server.
        var names: [Data] = []
        var onConnection: (@Sendable () -> Void)?
        /// What the server has said of scripts that it refuses.
        var said: [RedisScripts: String] = [:]
    }

    private final class Greetings: Sendable {
        let state = Mutex(Greeting())
    }

    let link: RedisLink
    /// A text that no other node has.
    let node = UUID().uuidString
    let prefix: String
    private let streamLimit: Int
    private let greeting: Greetings
    private let spaces = RedisSpaces()
    private let names = Mutex<[String: RedisNames]>([:])
    private let epochs = Atomic(0)
    private let tokens = Atomic(0)
    /// The scripts in a row that the server has refused.
    private let refusals = Atomic(0)

    /// The refusals in a row after which the connection is made again, whatever the server has said.
    private static let refusalLimit = 3

    init(_ source: @escaping @Sendable () throws -> RedisAddress, _ tierOptions: RedisTier.Options) throws {
        let greeting = Greetings()
        var options = tierOptions.link
        options.greeting = { _ in
            [Self.words(["ROLE"]), Self.words(["INFO", "cluster"])]
                + RedisScripts.allCases.map { Self.words(["SCRIPT", "LOAD", $0.text]) }
        }
        options.greeted = { _, replies in
            if let refusal = Self.refusal(ofRole: replies.first) { return refusal }
            // Without the right to ask, it is taken for none.
            if replies.dropFirst().first?.text?.contains("cluster_enabled:1") == true {
                return "The server is part of a cluster, in which no tier can work. Use one without cluster mode."
            }
            let names = replies.dropFirst(2).map { $0.data }
            for case .error(let message) in replies.dropFirst(2) { return "The server says: \(message)" }
            let onConnection = greeting.state.withLock { greeting in
                (greeting.said, greeting.names) = ([:], names.map { $0 ?? Data() })
                return greeting.onConnection
            }
            // Messages have to come from the same server.
            onConnection?()
            return nil
        }
        (self.greeting, prefix, streamLimit) = (greeting, tierOptions.prefix, max(100, tierOptions.streamLimit))
        link = try RedisLink(source, options)
    }

    /// Returns why a server with a role is of no use; nil for a master.
    static func refusal(ofRole reply: RESPValue?) -> String? {
        guard case .array(let role?)? = reply, let role = role.first?.text, role != "master" else { return nil }
        return "The server is a replica, which cannot write."
    }

    /// Returns a text that no other lease has.
    func token() -> String { "\(node)-\(tokens.add(1, ordering: .relaxed).newValue)" }

    /// Calls a closure for each new connection, before it is used.
    func onConnection(_ body: @escaping @Sendable () -> Void) { greeting.state.withLock { $0.onConnection = body } }

    /// What the server has said of a script that it refuses; nil if there is none.
    var refusal: String? { greeting.state.withLock { $0.said.min { $0.key.rawValue < $1.key.rawValue }?.value } }

    /// Returns the names of a cache on the server.
    func names(of space: SharedSpace) -> RedisNames {
        names.withLock { names in
            if let known = names[space.name] { return known }
            let new = RedisNames(prefix, space.name)
            names[space.name] = new
            return new
        }
    }

    /// What one run of a script gets: the keys on whose entries, leases and marks it works, and words.
    typealias Input = (keys: [Data], words: [Data])

    /// Runs a script for each input, as one piece, and returns the replies.
    func run(_ script: RedisScripts, in space: SharedSpace, _ inputs: [Input]) async throws -> [RESPValue] {
        let connection = try connection()
        for _ in 0..<2 {
            let session = try await session(on: connection, in: space)
            let replies = try await send(script, in: space, inputs, on: connection)
            if !replies.contains(where: { $0.text == "late" }) {
                for reply in replies { note(reply, of: session, in: space) }
                return replies
            }
            // The server has forgotten this node, and is told again.
            spaces.end(session, in: space.name)
        }
        throw RedisTier.Failure(description: "The server has forgotten this node.")
    }

    /// Returns what keys have; nil where a script has to decide, since a removal can concern an entry, or since it is damaged.
    ///
    /// The facts of the cache are read after the entries, so that a removal in between counts.
    func read(_ keys: [Data], in space: SharedSpace) async throws -> [SharedFetch?] {
        let connection = try connection()
        _ = try await session(on: connection, in: space)
        var (commands, names) = (RESPCommands(), names(of: space))
        for key in keys {
            commands.begin(2 + RedisEntry.fields.count)
            commands.add("HMGET")
            commands.add(names.entry, key)
            for field in RedisEntry.fields { commands.add(field) }
        }
        commands.begin(6)
        commands.add("HMGET")
        commands.add(names.meta, Data())
        for fact in ["e", "r", "a", "p"] { commands.add(fact) }
        commands.begin(1)
        commands.add("TIME")
        let replies = try await sending { try await link.call(commands, on: connection, isBounded: true) }
        guard case .array(let facts?) = replies[keys.count], case .array(let time?) = replies[keys.count + 1],
            time.count == 2, let seconds = time[0].text.flatMap({ Int64($0) }),
            let microseconds = time[1].text.flatMap({ Int64($0) }), Self.isMoment(seconds),
            (0..<1_000_000).contains(microseconds)
        else { return keys.map { _ in nil } }
        let now = seconds * 1000 + microseconds / 1000
        return replies.prefix(keys.count).map { reply in
            guard case .array(let values?) = reply else { return nil }
            if values.allSatisfy({ $0 == .bulk(nil) }) { return .missing }
            guard let found = RedisEntry(values, at: now), found.isUntouched(by: facts) else { return nil }
            return .entry(found.entry)
        }
    }

    // MARK: What the server has confirmed

    /// Notes the message in the reply of a script that has sent one.
    private func note(_ reply: RESPValue, of session: RedisSession, in space: SharedSpace) {
        let words = reply.text?.split(separator: " ") ?? []
        if words.count == 2, let id = RedisMessageID(words[1]) { spaces.note(id, of: session.life, in: space.name) }
    }

    /// Returns a position with what the server has confirmed beyond it.
    func positionToKeep(_ position: RedisPosition, in space: SharedSpace) -> RedisPosition {
        var position = position
        position.confirmed = spaces.last(of: position.life, in: space.name).flatMap { $0 > position.id ? $0 : nil }
        return position
    }

    /// Notes what a position from before the start says was confirmed.
    func noteConfirmed(by position: RedisPosition, in space: SharedSpace) {
        if let id = position.confirmed { spaces.note(id, of: position.life, in: space.name) }
    }

    /// Notes a message that was read, and returns the position behind it.
    func note(_ id: RedisMessageID, of session: RedisSession, in space: SharedSpace) -> String {
        spaces.note(id, of: session.life, in: space.name)
        return RedisPosition(id, in: session.life).text
    }

    /// A Boolean value that indicates whether the server has lost what it had confirmed, and no node was told.
    func hasLoss(in space: SharedSpace) -> Bool { spaces.hasLoss(in: space.name) }

    /// Returns whether the server has lost what it had confirmed, once for each time.
    func takeLoss(in space: SharedSpace) -> Bool { spaces.takeLoss(in: space.name) }

    /// Tells the server of this node, and asks it for the last message that this node knows, on each connection once, before anything else.
    ///
    /// If the server has lost it, it begins a new epoch, in which no entry from before counts.
    func session(in space: SharedSpace) async throws -> RedisSession {
        let connection = try connection()
        return try await session(on: connection, in: space)
    }

    private func session(on connection: Int, in space: SharedSpace) async throws -> RedisSession {
        while true {
            if let session = spaces.session(on: connection, in: space.name, on: Self.today) { return session }
            _ = try await check(spaces.known(in: space.name), in: space, on: connection)
        }
    }

    /// Asks the server for a message; if it has lost it, it begins a new epoch.
    func check(_ position: RedisPosition?, in space: SharedSpace, on connection: Int) async throws -> RedisFinding {
        let words = Self.words([position?.id.text ?? "", position?.life ?? "", space.name])
        let reply = try await send(.check, in: space, [(keys: [], words: words)], on: connection)[0]
        guard case .array(let parts?) = reply, parts.count > 1, let life = parts[1].text,
            let found = parts[0].text.flatMap({ RedisFinding(rawValue: $0) })
        else {
            link.drop(connection)
            throw RedisTier.Failure(description: "The server has given a reply of another kind.")
        }
        let session = RedisSession(connection: connection, life: life, day: Self.today)
        spaces.begin(session, in: space.name, position, found)
        let unused = parts.dropFirst(2).compactMap { $0.text }
        if !unused.isEmpty { Task { try await self.delete(unused) } }
        return found
    }

    /// The days since 1970.
    private static var today: Int { SharedClock.today }

    /// Returns whether a server's clock can show seconds since 1970.
    private static func isMoment(_ seconds: Int64) -> Bool { (0..<1 << 40).contains(seconds) }

    /// Deletes all that the server has of caches that no node has used for some days, and returns their number.
    func prune(unusedFor limit: Int) async throws -> Int {
        guard link.isAvailable else { throw unavailable() }
        do {
            return try await sending {
                guard case .array(let uses?) = try await link.call(Self.words(["HGETALL", "\(prefix):spaces"])) else {
                    throw RedisTier.Failure(description: "The server has given a reply of another kind.")
                }
                let spaces = stride(from: 0, to: uses.count - 1, by: 2).compactMap { place in
                    uses[place].text.flatMap { name in
                        uses[place + 1].text.flatMap { Int64($0) }.map { (name: name, day: $0) }
                    }
                }
                guard case .array(let time?) = try await link.call(Self.words(["TIME"])),
                    let now = time.first?.text.flatMap({ Int64($0) }), Self.isMoment(now)
                else { throw RedisTier.Failure(description: "The server has given a reply of another kind.") }
                // By the clock that has written the days.
                let first = now / 86_400 - Int64(max(0, min(limit, 1 << 30)))
                let unused = spaces.filter { $0.day < first }.map { $0.name }
                for name in unused { try await deleteEntries(of: name) }
                try await delete(unused)
                return unused.count
            }
        } catch RedisFault.refused(let message) {
            throw SharedRefusal("The server says: \(message)")
        }
    }

    private func deleteEntries(of space: String) async throws {
        let pattern = "\(prefix):{\(space)}:".reduce(into: "") { text, character in
            // What has a meaning in patterns.
            if "*?[]^\\-".contains(character) { text.append("\\") }
            text.append(character)
        }
        var cursor = "0"
        repeat {
            let reply = try await link.call(Self.words(["SCAN", cursor, "MATCH", "\(pattern)*", "COUNT", "1000"]))
            guard case .array(let parts?) = reply, parts.count == 2, let next = parts[0].text,
                case .array(let names?) = parts[1]
            else { throw RedisTier.Failure(description: "The server has given a reply of another kind.") }
            let found = names.compactMap { $0.data }
            if !found.isEmpty { _ = try await link.call(Self.words(["UNLINK"]) + found) }
            cursor = next
        } while cursor != "0"
    }

    /// Deletes the facts and messages of caches, such as those of earlier versions; their entries end by themselves.
    private func delete(_ spaces: [String]) async throws {
        for space in spaces {
            let names = names(of: SharedSpace(space))
            _ = try await link.call(Self.words(["DEL"]) + [names.meta, names.stream, names.nodes].map { Data($0) })
            _ = try await link.call(Self.words(["HDEL", "\(prefix):spaces", space]))
        }
    }

    // MARK: Sending

    private func send(
        _ script: RedisScripts, in space: SharedSpace, _ inputs: [Input], on connection: Int
    ) async throws -> [RESPValue] {
        let hashes = greeting.state.withLock { $0.names }
        guard hashes.indices.contains(script.rawValue) else { throw unavailable() }
        func commands(_ places: [Int]) -> RESPCommands {
            var (commands, names) = (RESPCommands(), names(of: space))
            for place in places {
                add(script, hashes[script.rawValue], names, inputs[place], connection, to: &commands)
            }
            return commands
        }
        do {
            return try await sending {
                // What writes is never refused: the node would have to repeat it, and could not read meanwhile.
                var replies = try await link.call(
                    commands(Array(inputs.indices)), on: connection, isBounded: script == .fetch)
                let unknown = replies.indices.filter { replies[$0].error?.contains("NOSCRIPT") ?? false }
                if !unknown.isEmpty {
                    _ = try await link.call(Self.words(["SCRIPT", "LOAD", script.text]), on: connection)
                    let others = try await link.call(commands(unknown), on: connection)
                    for (place, reply) in zip(unknown, others) { replies[place] = reply }
                }
                for case .error(let message) in replies { throw RedisFault.refused(message) }
                refusals.store(0, ordering: .relaxed)
                for reply in replies { noteAccepted(script, reply) }
                return replies
            }
        } catch RedisFault.refused(let message) {
            greeting.state.withLock { $0.said[script] = message }
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
        }
    }

    /// Adds the command that runs a script.
    private func add(
        _ script: RedisScripts, _ hash: Data, _ names: RedisNames, _ input: Input, _ connection: Int,
        to commands: inout RESPCommands
    ) {
        // The days on which caches were used are those of all caches.
        let others = script == .check ? ["\(prefix):spaces"] : []
        let keyCount = 3 + others.count + 3 * input.keys.count
        commands.begin(3 + keyCount + 4 + input.words.count)
        commands.add("EVALSHA")
        commands.add(hash)
        commands.add(String(keyCount))
        for name in [names.meta, names.stream, names.nodes] { commands.add(name, Data()) }
        for name in others { commands.add(name) }
        for key in input.keys {
            for name in [names.entry, names.lease, names.wait] { commands.add(name, key) }
        }
        commands.add(String(connection))
        commands.add("\(node) \(epochs.add(1, ordering: .relaxed).newValue)")
        commands.add(node)
        commands.add(String(streamLimit))
        for word in input.words { commands.add(word) }
    }

    /// Runs calls of the link, whose faults become errors with a sentence.
    private func sending<R>(_ body: () async throws -> R) async throws -> R {
        do {
            return try await body()
        } catch RedisFault.lost {
            throw RedisTier.Failure(description: "The connection was lost, or the reply has not come in time.")
        } catch RedisFault.unavailable {
            throw unavailable()
        } catch RedisFault.tooLarge {
            throw RedisTier.Failure(description: "More than 64 MB wait to be sent to the server.")
        } catch RedisFault.overLimit {
            throw RedisTier.Failure(
                description: "Too many calls wait for the server. Call less at once, or raise the callLimit.")
        }
    }

    /// Forgets what was said of a script that is accepted.
    ///
    /// A full server takes removals, and gives what it has.
    private func noteAccepted(_ script: RedisScripts, _ reply: RESPValue) {
        greeting.state.withLock { greeting in
            if greeting.said.isEmpty { return }
            if script == .store { for other in [RedisScripts.fetch, .renew] { greeting.said[other] = nil } }
            if case .array(let parts?) = reply, script == .fetch, parts.first?.text != "lease" { return }
            greeting.said[script] = nil
        }
    }

    func dropConnection() { if let connection = link.connection { link.drop(connection) } }

    private func connection() throws -> Int {
        if let connection = link.connection { return connection }
        link.countUnavailable()
        throw unavailable()
    }

    private func unavailable() -> RedisTier.Failure {
        RedisTier.Failure(description: "There is no connection. \(link.failure ?? "It is being made.")")
    }

    static func words(_ texts: [String]) -> [Data] { texts.map { Data($0.utf8) } }
}
