public import Foundation
internal import Larder

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
    /// The number of removals of one script.
    private static let removalCount = 500

    /// Creates a node, which connects in the background.
    ///
    /// If the address is none, the tier stays unavailable, and ``failure`` says what is wrong with it.
    ///
    /// - Parameters:
    ///   - url: The address, as in `redis://user:password@host:6379/0`.
    ///   - prefix: What the names on the server begin with.
    ///   - timeout: The time after which a reply is late; it is noticed half of it later at most.
    ///   - streamLimit: The number of messages that the server keeps of each cache for nodes that are away.
    public init(
        url: String, prefix: String, timeout: Duration = .milliseconds(300), streamLimit: Int = 10_000
    ) {
        do {
            let address = try RedisAddress(url)
            let calls = try RedisCalls(address, prefix, timeout, streamLimit: streamLimit)
            links = .success((calls, try RedisMessages(address, timeout, calls)))
        } catch let refusal as RedisAddress.Refusal {
            links = .failure(Failure(description: refusal.message))
        } catch {
            links = .failure(Failure(description: "This process has no files left for a connection."))
        }
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

    /// Ends the connections; none is made again.
    public func close() {
        guard case .success(let links) = links else { return }
        links.calls.link.close()
        links.messages.link.close()
    }

    // MARK: Calls

    /// Returns the entry of a key, or a lease.
    public func fetch(_ key: Data, in space: SharedSpace, lease: Duration?) async throws -> SharedFetch {
        try await fetch(key, space, lease, isAgain: false)
    }

    private func fetch(
        _ key: Data, _ space: SharedSpace, _ lease: Duration?, isAgain: Bool
    ) async throws -> SharedFetch {
        let token = try links.get().calls.token()
        let reply = try await run(.fetch, space, [key], [token, lease.map(Self.milliseconds) ?? ""])
        guard case .array(let values?) = reply, let kind = values.first?.text else { throw unexpected() }
        switch kind {
        case "missing": return .missing
        case "lease" where values.count == 2:
            if let stamp = values[1].text { return .lease(SharedLease(token: token, stamp: stamp)) }
        case "entry" where values.count == 7:
            if let entry = Self.entry(values) { return .entry(entry) }
            if lease == nil { return .missing }
            // It is damaged, or another program has put it there.
            if isAgain { break }
            _ = try isYes(try await run(.discard, space, [key], [values[6].data ?? Data()]))
            return try await fetch(key, space, lease, isAgain: true)
        default: break
        }
        throw unexpected()
    }

    /// Returns the entry in a reply; nil if it is damaged.
    private static func entry(_ values: [RESPValue]) -> SharedEntry? {
        guard case .integer(let left) = values[1], let tags = RedisTags.tags(values[2].data ?? Data()) else {
            return nil
        }
        let entry = SharedEntry(
            payload: values[3].data ?? Data(), age: .milliseconds(max(0, left)), tags: tags,
            extendedData: values[4].data, isAbsent: values[5].data != nil)
        return values[6].text == checksum(entry) ? entry : nil
    }

    /// Stores an entry, and returns whether that was done.
    public func store(
        _ entry: SharedEntry, forKey key: Data, in space: SharedSpace, lease: SharedLease?
    ) async throws -> Bool {
        var fields: [Data] = []
        if let data = entry.extendedData { fields += [Data("x".utf8), data] }
        if entry.isAbsent { fields += [Data("n".utf8), Data("1".utf8)] }
        fields += [Data("c".utf8), Data(Self.checksum(entry).utf8)]
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
        _ = try isYes(try await run(.discard, space, [key], [Self.checksum(entry)]))
    }

    /// Removes entries for all nodes.
    public func remove(_ removals: [SharedRemoval], in space: SharedSpace) async throws {
        var rest = removals[...]
        while !rest.isEmpty {
            var (keys, words) = ([Data](), [Data]())
            for removal in rest.prefix(Self.removalCount) {
                switch removal {
                case .key(let key):
                    keys.append(key)
                    words += [Data("k".utf8), key]
                case .tag(let tag): words += [Data("t".utf8), Data(tag.utf8)]
                case .all: words += [Data("a".utf8), Data()]
                }
            }
            _ = try isYes(try await run(.remove, space, keys, words))
            rest = rest.dropFirst(Self.removalCount)
        }
    }

    /// Returns the messages of other nodes, and waits for one, for a second at most.
    public func changes(in space: SharedSpace, after position: String?) async throws -> SharedChanges {
        let (calls, messages) = try links.get()
        let stream = calls.name("stream", space)
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
        _ script: RedisScripts, _ space: SharedSpace, _ keys: [Data], _ words: [String]
    ) async throws -> RESPValue { try await run(script, space, keys, words.map { Data($0.utf8) }) }

    private func run(
        _ script: RedisScripts, _ space: SharedSpace, _ keys: [Data], _ words: [Data]
    ) async throws -> RESPValue {
        let calls = try links.get().calls
        let names = keys.flatMap { key in ["e:", "l:", "w:"].map { calls.name($0, space) + key } }
        return try await calls.run(script, in: space, names, words)
    }

    /// Returns whether a script has done what was asked; behind the word stands the message that it has sent.
    private func isYes(_ reply: RESPValue) throws -> Bool {
        let words = (reply.text ?? "").split(separator: " ")
        guard let answer = words.first, ["yes", "no"].contains(answer), words.count < 3 else { throw unexpected() }
        return answer == "yes"
    }

    /// The checksum of all that is stored of an entry but its age: FNV-1a in 64 bits.
    private static func checksum(_ entry: SharedEntry) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        add(entry.payload)
        add(RedisTags.bytes(of: entry.tags))
        add("\(entry.isAbsent) \(entry.extendedData?.count ?? -1)".utf8)
        add(entry.extendedData ?? Data())
        return String(hash, radix: 16)
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

extension RESPValue {
    var data: Data? { if case .bulk(let data) = self { data } else { nil } }

    var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let data?): String(decoding: data, as: UTF8.self)
        default: nil
        }
    }
}

/// Tags as one text: each with its length in front, as in `3:red4:blue`.
enum RedisTags {
    static func bytes(of tags: Set<String>) -> Data {
        tags.sorted().reduce(into: Data()) { $0 += Data("\($1.utf8.count):\($1)".utf8) }
    }

    /// Returns the tags; nil if the bytes are none.
    static func tags(_ bytes: Data) -> Set<String>? {
        var (tags, rest) = (Set<String>(), bytes)
        while !rest.isEmpty {
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")),
                let count = Int(String(decoding: rest[..<colon], as: UTF8.self)), count >= 0,
                rest.distance(from: colon, to: rest.endIndex) > count
            else { return nil }
            let first = colon + 1
            tags.insert(String(decoding: rest[first..<first + count], as: UTF8.self))
            rest = rest[(first + count)...]
        }
        return tags
    }
}
