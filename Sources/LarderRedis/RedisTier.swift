internal import Dispatch
public import Foundation
internal import Larder
internal import LarderLocks

/// A shared tier on a server that speaks the protocol of Redis, such as Redis or Valkey.
///
/// ```swift
/// let tier = RedisTier(url: "redis://127.0.0.1:6379", prefix: "app")
/// let shared = try await articles.shared(through: tier)
/// ```
///
/// An object is one node with two connections, whatever the number of its caches. It connects automatically, again after each loss, and
/// no call waits for that. Everything under the prefix belongs to the nodes that use it.
public final class RedisTier: SharedTier {
    /// Why a call has failed.
    public struct Failure: Error, Hashable, CustomStringConvertible {
        /// A sentence that says what is wrong.
        public let description: String
    }

    private let links: Result<(calls: RedisCalls, messages: RedisMessages), Failure>

    /// The longest age that an entry has on the server, and that of one without an end.
    private static let (longestAge, defaultAge) = (Duration.seconds(28 * 86_400), Duration.seconds(7 * 86_400))
    /// The number of removals of one script, and of the keys that are fetched in one piece.
    private static let pieceCount = 500

    /// Creates a node, which connects in the background.
    ///
    /// If the address is none, the tier stays unavailable, and ``failure`` says what is wrong with it.
    ///
    /// - Parameters:
    ///   - url: The address, as in `redis://user:password@host:6379/0` or `unix:///run/redis.sock?db=0`.
    ///   - prefix: What the names on the server begin with.
    ///   - timeout: The time after which a reply is late; it is noticed half of it later at most. A server that takes half of it three
    ///     times in a row is left alone for a second, or longer if it does so again.
    ///   - streamLimit: The number of messages that the server keeps of each cache for nodes that are away.
    ///   - callLimit: The number of calls that may wait for the server; beyond it reads fail at once, and each node loads for itself.
    ///   - security: How the connections are encrypted, for an address that begins with `rediss:`.
    public init(
        url: String, prefix: String, timeout: Duration = .milliseconds(300), streamLimit: Int = 10_000,
        callLimit: Int = 10_000, security: RedisSecurity? = nil
    ) {
        let options = Options(prefix, timeout, streamLimit, callLimit, security)
        do throws(Failure) {
            let address = try Self.address(url, security)
            links = Self.links(options) { address }
        } catch {
            links = .failure(error)
        }
    }

    /// Creates a node as ``init(url:prefix:timeout:streamLimit:callLimit:security:)`` does, and throws if the address is none.
    ///
    /// - Throws: ``Failure`` with a sentence that says what is wrong with the address.
    public init(
        validating url: String, prefix: String, timeout: Duration = .milliseconds(300), streamLimit: Int = 10_000,
        callLimit: Int = 10_000, security: RedisSecurity? = nil
    ) throws(Failure) {
        let address = try Self.address(url, security)
        links = Self.links(Options(prefix, timeout, streamLimit, callLimit, security)) { address }
    }

    /// Creates a node that asks where its server is, and as whom to come, whenever it connects.
    ///
    /// Use it for a service that finds servers, and for passwords that change. A closure that has not returned after ten seconds is
    /// cancelled, and asked again later; while it runs there is no connection.
    ///
    /// - Parameters:
    ///   - prefix: What the names on the server begin with.
    ///   - address: Returns the address, as in `redis://host:6379`.
    ///   - credentials: Returns a user and a password, in place of those in the address; nil for those.
    ///   - timeout: The time after which a reply is late; it is noticed half of it later at most. A server that takes half of it three
    ///     times in a row is left alone for a second, or longer if it does so again.
    ///   - streamLimit: The number of messages that the server keeps of each cache for nodes that are away.
    ///   - callLimit: The number of calls that may wait for the server; beyond it reads fail at once, and each node loads for itself.
    ///   - security: How the connections are encrypted, for an address that begins with `rediss:`.
    public init(
        prefix: String, address: @escaping @Sendable () async throws -> String,
        credentials: (@Sendable () async throws -> RedisCredentials)? = nil,
        timeout: Duration = .milliseconds(300), streamLimit: Int = 10_000,
        callLimit: Int = 10_000, security: RedisSecurity? = nil
    ) {
        links = Self.links(Options(prefix, timeout, streamLimit, callLimit, security)) {
            try Self.asking {
                var found = try Self.address(try await address(), security)
                if let who = try await credentials?() { (found.user, found.password) = (who.user, who.password) }
                return found
            }
        }
    }

    static func address(_ url: String, _ security: RedisSecurity?) throws(Failure) -> RedisAddress {
        do throws(RedisAddress.Refusal) {
            let address = try RedisAddress(url)
            if let refusal = address.refusal(with: security) { throw RedisAddress.Refusal(message: refusal) }
            return address
        } catch {
            throw Failure(description: error.message)
        }
    }

    /// What the connections of a node have in common.
    struct Options: Sendable {
        let prefix: String
        let streamLimit: Int
        var link = RedisLink.Options()

        init(_ prefix: String, _ timeout: Duration, _ streamLimit: Int, _ callLimit: Int, _ security: RedisSecurity?) {
            (self.prefix, self.streamLimit) = (prefix, streamLimit)
            (link.timeout, link.slowness, link.security) = (timeout, timeout / 2, security)
            link.callLimit = max(1, callLimit)
        }
    }

    private static func links(
        _ options: Options, _ source: @escaping @Sendable () throws -> RedisAddress
    ) -> Result<(calls: RedisCalls, messages: RedisMessages), Failure> {
        do {
            let calls = try RedisCalls(source, options)
            return .success((calls, try RedisMessages(source, options, calls)))
        } catch {
            return .failure(Failure(description: "This process has no files left for a connection."))
        }
    }

    /// Asks a closure of the program on a thread that may wait.
    private static func asking<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
        let (answer, done) = (Answer<R>(), DispatchSemaphore(value: 0))
        let task = Task {
            do { answer.set(.success(try await body())) } catch { answer.set(.failure(error)) }
            done.signal()
        }
        if done.wait(timeout: .now() + 10) == .timedOut { task.cancel() }
        guard let result = answer.result else {
            throw Failure(description: "The closure has not returned in ten seconds.")
        }
        return try result.get()
    }

    /// What a closure has returned.
    private final class Answer<R: Sendable>: Sendable {
        private let state = Mutex<Result<R, any Error>?>(nil)

        var result: Result<R, any Error>? { state.withLock { $0 } }

        func set(_ result: Result<R, any Error>) { state.withLock { $0 = result } }
    }

    deinit { close() }

    /// A Boolean value that indicates whether there is a connection.
    public var isAvailable: Bool {
        switch links {
        case .success(let links): links.calls.link.isAvailable
        case .failure: false
        }
    }

    /// A Boolean value that indicates whether both connections lead to one server.
    public var hasMessages: Bool {
        switch links {
        case .success(let links): links.messages.isProven
        case .failure: false
        }
    }

    /// A Boolean value that indicates whether both connections are there.
    package var isConnected: Bool {
        if case .success(let links) = links {
            links.calls.link.isAvailable && links.messages.link.isAvailable
        } else {
            false
        }
    }

    /// Why there is no connection, or what the server has refused last; nil if all is well, or nothing was tried yet.
    public var failure: String? {
        switch links {
        case .success(let links):
            links.calls.link.failure ?? links.messages.link.failure
                ?? links.calls.refusal.map { "The server says: \($0)" }
        case .failure(let failure): failure.description
        }
    }

    /// What was sent and received, and what has failed.
    public var statistics: RedisStatistics {
        guard case .success(let links) = links else { return RedisStatistics() }
        return links.calls.link.statistics + links.messages.link.statistics
    }

    /// Deletes what the server has of caches under the prefix that no node has used for some days, such as those of earlier versions.
    ///
    /// Without it their entries end by their age, and the rest after four weeks. It looks at all keys of the server, in small steps. A
    /// node that uses such a cache all the same finds it without entries.
    ///
    /// - Parameter days: The number of days, 2 or more: a node that runs says once a day which caches it uses.
    /// - Returns: The number of these caches.
    /// - Throws: If the server cannot be reached, or lacks a right: it needs `SCAN` and `UNLINK`.
    @discardableResult
    public func prune(unusedFor days: Int = 2) async throws -> Int {
        try await links.get().calls.prune(unusedFor: max(2, days))
    }

    /// Ends the connections; none is made again.
    public func close() {
        guard case .success(let links) = links else { return }
        links.calls.link.close()
        links.messages.link.close()
    }

    // MARK: Calls

    /// Returns the entry of a key, or a lease.
    public func fetch(_ key: Data, in space: SharedSpace, lease: Duration?) async throws -> SharedFetch {
        try await fetch(keys: [key], in: space, lease: lease)[0]
    }

    /// Returns the entries of keys, or leases: what is there in one piece, and the rest in another one.
    public func fetch(keys: [Data], in space: SharedSpace, lease: Duration?) async throws -> [SharedFetch] {
        if keys.count > Self.pieceCount {
            let first = try await fetch(keys: Array(keys.prefix(Self.pieceCount)), in: space, lease: lease)
            return try await first + fetch(keys: Array(keys.dropFirst(Self.pieceCount)), in: space, lease: lease)
        }
        var found = try await links.get().calls.read(keys, in: space)
        let rest = found.indices.filter { found[$0] == nil || lease != nil && found[$0] == .missing }
        for (place, fetch) in zip(rest, try await decide(rest.map { keys[$0] }, space, lease, isAgain: false)) {
            found[place] = fetch
        }
        return found.compactMap { $0 }
    }

    /// Lets a script decide what keys have: an entry, a lease or none.
    private func decide(
        _ keys: [Data], _ space: SharedSpace, _ lease: Duration?, isAgain: Bool
    ) async throws -> [SharedFetch] {
        if keys.isEmpty { return [] }
        let calls = try links.get().calls
        let tokens = keys.map { _ in calls.token() }
        let age = Data((lease.map(Self.milliseconds) ?? "").utf8)
        let replies = try await calls.run(
            .fetch, in: space, zip(keys, tokens).map { (keys: [$0], words: [Data($1.utf8), age]) })
        var found: [SharedFetch] = []
        for (place, reply) in replies.enumerated() {
            guard case .array(let values?) = reply, let kind = values.first?.text else { throw unexpected() }
            switch (kind, values.count) {
            case ("missing", _): found.append(.missing)
            case ("lease", 2):
                guard let stamp = values[1].text else { throw unexpected() }
                found.append(.lease(SharedLease(token: tokens[place], stamp: stamp)))
            case ("entry", 7):
                guard case .integer(let left) = values[1] else { throw unexpected() }
                if let entry = RedisEntry.entry(Array(values[2...]), left: left) {
                    found.append(.entry(entry))
                } else if lease == nil {
                    found.append(.missing)
                } else {
                    // It is damaged, or another program has put it there.
                    if isAgain { throw unexpected() }
                    _ = try isYes(try await run(.discard, space, [keys[place]], [values[6].data ?? Data()]))
                    found += try await decide([keys[place]], space, lease, isAgain: true)
                }
            default: throw unexpected()
            }
        }
        return found
    }

    /// Stores an entry, and returns whether that was done.
    public func store(
        _ entry: SharedEntry, forKey key: Data, in space: SharedSpace, lease: SharedLease?
    ) async throws -> Bool {
        var fields: [Data] = []
        if let data = entry.extendedData { fields += [Data("x".utf8), data] }
        if entry.isAbsent { fields += [Data("n".utf8), Data("1".utf8)] }
        fields += [Data("c".utf8), Data(RedisEntry.checksum(of: entry).utf8)]
        let age = Self.milliseconds(min(entry.age ?? Self.defaultAge, Self.longestAge))
        let first = [lease.map(Self.text) ?? "", lease?.stamp ?? ""].map { Data($0.utf8) }
        let rest = [key, Data(age.utf8), entry.payload, RedisTags.bytes(of: entry.tags)]
        let reply = try await run(.store, space, [key], first + rest + fields)
        return try isYes(reply)
    }

    /// Lets a lease begin its age again, or gives it back.
    public func renew(_ lease: SharedLease, forKey key: Data, in space: SharedSpace, age: Duration?) async throws {
        let words = [Data(Self.text(of: lease).utf8), Data((age.map(Self.milliseconds) ?? "").utf8), key]
        _ = try isYes(try await run(.renew, space, [key], words))
    }

    /// What the server has of a lease.
    private static func text(of lease: SharedLease) -> String { "\(lease.token) \(lease.stamp)" }

    /// Removes an entry that cannot be used, unless another one has taken its place.
    public func discard(_ entry: SharedEntry, forKey key: Data, in space: SharedSpace) async throws {
        _ = try isYes(try await run(.discard, space, [key], [Data(RedisEntry.checksum(of: entry).utf8)]))
    }

    /// Removes entries for all nodes.
    public func remove(_ removals: [SharedRemoval], in space: SharedSpace) async throws {
        var rest = removals[...]
        while !rest.isEmpty {
            var (keys, words) = ([Data](), [Data]())
            for removal in rest.prefix(Self.pieceCount) {
                switch removal {
                case .key(let key):
                    keys.append(key)
                    words += [Data("k".utf8), key]
                case .tag(let tag): words += [Data("t".utf8), Data(tag.utf8)]
                case .prefix(let prefix): words += [Data("p".utf8), prefix]
                case .all: words += [Data("a".utf8), Data()]
                }
            }
            _ = try isYes(try await run(.remove, space, keys, words))
            rest = rest.dropFirst(Self.pieceCount)
        }
    }

    /// Returns the messages of other nodes, and waits for one, for a second at most.
    public func changes(in space: SharedSpace, after position: String?) async throws -> SharedChanges {
        let (calls, messages) = try links.get()
        let stream = Data(calls.names(of: space).stream)
        let last = position.flatMap { RedisPosition($0) }
        if let last { calls.noteConfirmed(by: last, in: space) }
        let session = try await calls.session(in: space)
        /// Messages that came over another connection may be those of another server.
        func requireSession(_ connection: Int) throws {
            if connection != session.connection { throw Failure(description: "There is another connection by now.") }
        }
        func end(isComplete: Bool) async throws -> SharedChanges {
            let end = try await messages.end(of: stream)
            try requireSession(end.connection)
            return SharedChanges(
                messages: [], position: calls.note(end.last, of: session, in: space), isComplete: isComplete,
                isUpToDate: true, hasLostWrites: !isComplete && calls.takeLoss(in: space))
        }
        if position == nil { return try await end(isComplete: true) }
        // One that is no position of a server tells nothing of this one.
        guard let position = last else { return try await end(isComplete: false) }
        if calls.hasLoss(in: space) { return try await end(isComplete: false) }
        if position.life != session.life {
            // The number alone could be that of another message.
            guard try await calls.check(position, in: space, on: session.connection) == .there else {
                return try await end(isComplete: false)
            }
            let moved = calls.note(position.id, of: session, in: space)
            return SharedChanges(messages: [], position: moved, isComplete: true, isUpToDate: false)
        }
        guard let found = try await messages.next(in: stream, after: position.id) else {
            return try await end(isComplete: false)
        }
        try requireSession(found.connection)
        return SharedChanges(
            messages: found.messages, position: calls.note(found.last, of: session, in: space), isComplete: true,
            isUpToDate: found.isUpToDate)
    }

    /// Returns a position with what the server has confirmed beyond it.
    public func positionToKeep(_ position: String, in space: SharedSpace) -> String {
        guard case .success(let links) = links, let known = RedisPosition(position) else { return position }
        return links.calls.positionToKeep(known, in: space).text
    }

    // MARK: Parts

    private func run(
        _ script: RedisScripts, _ space: SharedSpace, _ keys: [Data], _ words: [Data]
    ) async throws -> RESPValue {
        try await links.get().calls.run(script, in: space, [(keys: keys, words: words)])[0]
    }

    /// Returns whether a script has done what was asked; behind the word stands the message that it has sent.
    private func isYes(_ reply: RESPValue) throws -> Bool {
        let words = (reply.text ?? "").split(separator: " ")
        guard let answer = words.first, ["yes", "no"].contains(answer), words.count < 3 else { throw unexpected() }
        return answer == "yes"
    }

    /// Another program uses the names, or the connection is out of step, so it is made again.
    private func unexpected() -> Failure {
        if case .success(let links) = links { links.calls.dropConnection() }
        return Failure(description: "The server has given a reply of another kind.")
    }

    private static func milliseconds(_ time: Duration) -> String {
        "\(max(1, Int64(min(time, longestAge) / .milliseconds(1))))"
    }
}

/// As whom a node comes to its server.
public struct RedisCredentials: Hashable, Sendable {
    /// The user; nil for the one that the server has by default.
    public var user: String?
    /// The password.
    public var password: String

    /// Creates credentials.
    public init(user: String? = nil, password: String) { (self.user, self.password) = (user, password) }
}

extension RESPValue {
    var error: String? { if case .error(let message) = self { message } else { nil } }

    var data: Data? { if case .bulk(let data) = self { data } else { nil } }

    var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let data?): String(decoding: data, as: UTF8.self)
        default: nil
        }
    }
}
