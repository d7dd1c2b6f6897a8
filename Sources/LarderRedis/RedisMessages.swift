internal import Foundation
internal import Larder
internal import LarderLocks

/// The connection on which the messages of all caches of a node are awaited, by one command.
final class RedisMessages: Sendable {
    /// Messages behind a place in a stream.
    struct Found: Sendable {
        let messages: [SharedChanges.Message]
        /// The number of the last one, or the place if there is none.
        let last: RedisMessageID
        /// A Boolean value that indicates whether there were no more.
        let isUpToDate: Bool
        /// The connection for calls that led to the same server.
        let connection: Int
    }

    private struct Wait {
        let stream: Data
        let position: RedisMessageID
        /// The moment at which it is answered without a message.
        let end = ContinuousClock.now + .milliseconds(blockTime)
        let continuation: CheckedContinuation<Found?, any Error>
    }

    private struct State {
        var waits: [Int: Wait] = [:]
        var lastWait = 0
        var isRunning = false
        /// The number of the command that waits at the server; nil if there is none.
        var blocking: Int?
        var lastCommand = 0
        /// The last messages when this node asked for the ends of streams: its own up to there are given to it too.
        var ends: [Data: RedisMessageID] = [:]
        /// The two connections that were found to lead to one server.
        var proven: (messages: Int, calls: Int)?
    }

    /// What the greeting has told of the connection.
    private final class Client: Sendable {
        let id = Atomic<Int64>(0)
    }

    let link: RedisLink
    private let calls: RedisCalls
    private let client: Client
    private let name: String
    private let state = Mutex(State())

    /// The time for which a command waits at the server, and the number of messages of one reply.
    private static let (blockTime, countLimit) = (1000, 1000)

    init(
        _ source: @escaping @Sendable () throws -> RedisAddress, _ tierOptions: RedisTier.Options, _ calls: RedisCalls
    ) throws {
        let client = Client()
        var options = tierOptions.link
        // It has one call, which waits for messages.
        options.slowness = nil
        let name = "larder:\(calls.node)"
        options.greeting = { connection in
            [
                RedisCalls.words(["CLIENT", "ID"]),
                RedisCalls.words(["CLIENT", "SETNAME", "\(name):\(connection)"]), RedisCalls.words(["ROLE"]),
            ]
        }
        options.greeted = { _, replies in
            if let refusal = RedisCalls.refusal(ofRole: replies.last) { return refusal }
            for case .error(let message) in replies { return "The server says: \(message)" }
            if case .integer(let id)? = replies.first { client.id.store(id, ordering: .relaxed) }
            return nil
        }
        (self.calls, self.client, self.name) = (calls, client, name)
        link = try RedisLink(source, options)
        calls.onConnection { [weak self] in self?.end() }
    }

    /// Ends the connection if it was used together with an earlier one for calls.
    private func end() {
        if let proven = state.withLock({ $0.proven.take() }) { link.drop(proven.messages) }
    }

    /// A Boolean value that indicates whether both connections were found to lead to one server.
    var isProven: Bool {
        guard let own = link.connection, let other = calls.link.connection, let proven = state.withLock({ $0.proven })
        else { return false }
        return proven == (own, other)
    }

    /// Returns the connection for calls; throws unless both lead to one server, because no messages would come from another one.
    ///
    /// The server of the calls is asked for the name of the connection for messages.
    private func requireOneServer() async throws -> Int {
        // It is made at the same time as the other one.
        let end = ContinuousClock.now + .milliseconds(50)
        while link.connection == nil, calls.link.isAvailable, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(1))
        }
        guard let own = link.connection, let other = calls.link.connection else { throw RedisFault.unavailable }
        if isProven { return other }
        let id = "\(client.id.load(ordering: .relaxed))"
        let list = try await calls.link.call(RedisCalls.words(["CLIENT", "LIST", "ID", id]), on: other)
        guard let list = list.text, list.contains("name=\(name):\(own) ") else {
            link.drop(own)
            throw RedisFault.refused("this server is not that of the calls")
        }
        state.withLock { $0.proven = (own, other) }
        return other
    }

    /// Returns the position behind all messages.
    ///
    /// It is that of a message, so that a loss is noticed: an empty stream gets one that says nothing.
    func end(of stream: Data) async throws -> Found {
        // The other connection is free, but without this one there are no messages.
        let (end, connection) = try await translating {
            let connection = try await self.requireOneServer()
            return (try await self.findEnd(of: stream, on: connection), connection)
        }
        state.withLock { $0.ends[stream] = end }
        return Found(messages: [], last: end, isUpToDate: true, connection: connection)
    }

    private func findEnd(of stream: Data, on connection: Int) async throws -> RedisMessageID {
        let look = RedisCalls.words(["XREVRANGE"]) + [stream] + RedisCalls.words(["+", "-", "COUNT", "1"])
        let last = try await calls.link.call(look, on: connection)
        if case .array(let entries?) = last, let entry = entries.first, let id = Self.id(of: entry) { return id }
        let words = RedisCalls.words(["*", "n", calls.node, "k", "h", "v", ""])
        let made = try await calls.link.call(RedisCalls.words(["XADD"]) + [stream] + words, on: connection)
        guard let id = made.text.flatMap({ RedisMessageID($0) }) else { throw Self.unexpected }
        return id
    }

    /// Returns the messages behind a position, waits for one, and returns without one after a second; nil if some were lost.
    func next(in stream: Data, after position: RedisMessageID) async throws -> Found? {
        let number = state.withLock { state in
            state.lastWait += 1
            return state.lastWait
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (begins, isCancelled) = state.withLock { state -> (Bool, Bool) in
                    if Task.isCancelled { return (false, true) }
                    state.waits[number] = Wait(stream: stream, position: position, continuation: continuation)
                    defer { state.isRunning = true }
                    return (!state.isRunning, false)
                }
                if isCancelled { return continuation.resume(throwing: CancellationError()) }
                if begins { Task { await self.run() } } else { Task { try await self.unblock() } }
            }
        } onCancel: {
            state.withLock { $0.waits.removeValue(forKey: number) }?.continuation.resume(throwing: CancellationError())
        }
    }

    // MARK: One command for all

    private func run() async {
        while true {
            let waits = state.withLock { state -> [Int: Wait] in
                state.isRunning = !state.waits.isEmpty
                state.lastCommand += 1
                if state.isRunning { state.blocking = state.lastCommand }
                return state.waits
            }
            if waits.isEmpty { return }
            var answers: [Int: Result<Found?, any Error>] = [:]
            do { answers = try await read(waits) } catch { answers = waits.mapValues { _ in .failure(error) } }
            let done = state.withLock { state in
                state.blocking = nil
                return answers.compactMap { number, answer in
                    state.waits.removeValue(forKey: number).map { ($0.continuation, answer) }
                }
            }
            for (continuation, answer) in done { continuation.resume(with: answer) }
        }
    }

    /// Waits for messages in all streams, and looks whether the positions are still there.
    ///
    /// As long as the message at a position is there, none behind it was lost. Where nothing has happened, the wait goes on.
    private func read(_ waits: [Int: Wait]) async throws -> [Int: Result<Found?, any Error>] {
        let waits = waits.sorted { $0.key < $1.key }
        let words = ["XREAD", "COUNT", "\(Self.countLimit)", "BLOCK", "\(Self.blockTime)", "STREAMS"]
        var commands = [
            RedisCalls.words(words) + waits.map { $0.value.stream } + waits.map { Data($0.value.position.text.utf8) }
        ]
        for (_, wait) in waits {
            let position = RedisCalls.words([wait.position.text, wait.position.text])
            commands.append(RedisCalls.words(["XRANGE"]) + [wait.stream] + position)
        }
        let (replies, connection) = try await translating { [commands] in
            let connection = try await self.requireOneServer()
            let replies = try await self.link.call(RESPCommands(commands), patience: .milliseconds(Self.blockTime))
            // In the meantime the calls may have begun on another server.
            guard self.calls.link.connection == connection else { throw RedisFault.lost }
            return (replies, connection)
        }
        var entries: [Data: [RESPValue]] = [:]
        if case .array(let streams?) = replies[0] {
            for case .array(let stream?) in streams where stream.count == 2 {
                if let name = stream[0].data, case .array(let found?) = stream[1] { entries[name] = found }
            }
        }
        var answers: [Int: Result<Found?, any Error>] = [:]
        let now = ContinuousClock.now
        for (index, (number, wait)) in waits.enumerated() {
            switch replies[index + 1] {
            // A stream of another type is the fault of its cache alone.
            case .error(let message): answers[number] = .failure(Self.refusal(message))
            case .array(let found?) where !found.isEmpty:
                let new = entries[wait.stream] ?? []
                if !new.isEmpty || wait.end <= now {
                    answers[number] = Result { try messages(new, for: wait, connection) }
                }
            default: answers[number] = .success(nil)
            }
        }
        if answers.isEmpty, case .error(let message) = replies[0] { throw Self.refusal(message) }
        return answers
    }

    private func messages(_ entries: [RESPValue], for wait: Wait, _ connection: Int) throws -> Found {
        let end = state.withLock { $0.ends[wait.stream] }
        return Found(
            messages: entries.compactMap { message($0, after: end) },
            last: try entries.last.map(Self.requireID) ?? wait.position, isUpToDate: entries.count < Self.countLimit,
            connection: connection)
    }

    /// Ends the wait of a command at the server, so that another one is sent.
    private func unblock() async throws {
        guard let command = state.withLock({ $0.blocking }) else { return }
        while state.withLock({ $0.blocking == command }), calls.link.isAvailable {
            let id = "\(client.id.load(ordering: .relaxed))"
            let reply = try await calls.link.call(RedisCalls.words(["CLIENT", "UNBLOCK", id]))
            if reply != .integer(0) { return }
            // It has not come to the server yet.
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private func translating<R>(_ body: () async throws -> R) async throws -> R {
        do { return try await body() } catch RedisFault.refused(let message) {
            throw Self.refusal(message)
        } catch is RedisFault {
            throw RedisTier.Failure(
                description: "There is no connection for messages. \(link.failure ?? "The last one was lost.")")
        }
    }

    // MARK: Messages

    private static func refusal(_ message: String) -> RedisTier.Failure {
        RedisTier.Failure(description: "The server says: \(message)")
    }

    private static let unexpected = RedisTier.Failure(description: "The server has given a reply of another kind.")

    private static func id(of entry: RESPValue) -> RedisMessageID? {
        guard case .array(let parts?) = entry, parts.count == 2 else { return nil }
        return parts[0].text.flatMap { RedisMessageID($0) }
    }

    private static func requireID(of entry: RESPValue) throws -> RedisMessageID {
        guard let id = id(of: entry) else { throw unexpected }
        return id
    }

    /// Returns the message in an entry of a stream; nil if it says nothing, or is this node's and behind an end.
    private func message(_ entry: RESPValue, after end: RedisMessageID?) -> SharedChanges.Message? {
        guard case .array(let parts?) = entry, parts.count == 2, case .array(let words?) = parts[1], words.count == 6,
            let node = words[1].text, let kind = words[3].text, let text = words[5].data
        else { return .removed(.all) }
        if node == calls.node, let end, let id = parts[0].text.flatMap({ RedisMessageID($0) }), end < id { return nil }
        switch kind {
        case "k": return .removed(.key(text))
        case "t": return .removed(.tag(String(decoding: text, as: UTF8.self)))
        case "p": return .removed(.prefix(text))
        case "l": return .loaded(text)
        case "h": return nil
        // Of a later release.
        default: return .removed(.all)
        }
    }
}
