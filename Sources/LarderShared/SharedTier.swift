public import Foundation

/// What connects the caches of several nodes: it keeps values for all of them, and tells each what the others remove.
///
/// An object is one node. Keys, payloads and tags are bytes and texts to it. It has these duties:
///
/// - A *lease* is given to one node at a time for a key that has no entry, and ends after its age. What is stored with
///   a lease is refused if the lease has ended, or if all entries, a prefix of the key or one of the tags of the new entry were removed
///   since, and then the lease has ended.
/// - A plain write and a removal of a key take its lease away.
/// - Each plain write and each removal is a message to the other nodes, in the order in which they were done.
/// - A call that has thrown must not take effect after a later call has returned.
/// - A tier that can lose what it has confirmed notices that, serves nothing from before, and says so in its next messages.
///
/// It throws a ``SharedRefusal`` if it answers and refuses, and any other error if it cannot be reached.
public protocol SharedTier: Sendable {
    /// Returns the entry of a key; if there is none, gives this node the lease to make one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - space: The cache.
    ///   - lease: The age of a lease; nil asks for none.
    /// - Throws: If the tier cannot be reached, or does not answer.
    func fetch(_ key: Data, in space: SharedSpace, lease: Duration?) async throws -> SharedFetch

    /// Returns the entries of keys, in their order; for a key that has none, gives this node the lease to make one.
    ///
    /// By default it calls ``fetch(_:in:lease:)`` for each key, all at once.
    ///
    /// - Parameters:
    ///   - keys: The keys, each once.
    ///   - space: The cache.
    ///   - lease: The age of a lease; nil asks for none.
    /// - Throws: If the tier cannot be reached, or does not answer.
    func fetch(keys: [Data], in space: SharedSpace, lease: Duration?) async throws -> [SharedFetch]

    /// Stores an entry, and returns whether that was done.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - key: The key.
    ///   - space: The cache.
    ///   - lease: The lease under which the entry was made, which ends with it; nil for a plain write, which is always done.
    /// - Throws: If the tier cannot be reached, or does not answer. The entry may be stored all the same.
    func store(
        _ entry: SharedEntry, forKey key: Data, in space: SharedSpace, lease: SharedLease?
    ) async throws -> Bool

    /// Lets a lease begin its age again, or gives it back, so that another node can make the entry.
    ///
    /// - Parameters:
    ///   - lease: The lease. If it has ended, nothing changes.
    ///   - key: The key.
    ///   - space: The cache.
    ///   - age: The age of the lease from now on; nil gives it back.
    /// - Throws: If the tier cannot be reached, or does not answer.
    func renew(_ lease: SharedLease, forKey key: Data, in space: SharedSpace, age: Duration?) async throws

    /// Removes entries for all nodes, in order.
    ///
    /// - Parameters:
    ///   - removals: What is removed.
    ///   - space: The cache.
    /// - Throws: If the tier cannot be reached, or does not answer. The entries may be removed all the same.
    func remove(_ removals: [SharedRemoval], in space: SharedSpace) async throws

    /// Removes an entry that cannot be used, unless another one has taken its place, and sends no message.
    ///
    /// - Parameters:
    ///   - entry: The entry, as ``fetch(_:in:lease:)`` has returned it.
    ///   - key: The key.
    ///   - space: The cache.
    /// - Throws: If the tier cannot be reached, or does not answer.
    func discard(_ entry: SharedEntry, forKey key: Data, in space: SharedSpace) async throws

    /// Returns the messages of other nodes behind a position, and waits for one if there is none.
    ///
    /// Those of this node are left out if they were sent after the last call without a position: what was sent before can be of an
    /// earlier start. It may also return without a message, so that the caller knows that the tier is there.
    ///
    /// - Parameters:
    ///   - space: The cache.
    ///   - position: The position of the last call; nil to begin at the end, and then it does not wait.
    /// - Throws: If the tier cannot be reached, or `CancellationError`.
    func changes(in space: SharedSpace, after position: String?) async throws -> SharedChanges

    /// Returns a position as it is kept for the next start of this node, for example with what it knows beyond it.
    ///
    /// - Parameters:
    ///   - position: The position of the last call of ``changes(in:after:)``.
    ///   - space: The cache.
    func positionToKeep(_ position: String, in space: SharedSpace) -> String

    /// A Boolean value that indicates whether a call is worth its while; false if it would fail at once.
    var isAvailable: Bool { get }

    /// A Boolean value that indicates whether the messages are those of what the calls use.
    ///
    /// If not, the tier is not read. It is true unless a tier has a connection for each.
    var hasMessages: Bool { get }
}

extension SharedTier {
    /// True.
    public var hasMessages: Bool { true }

    /// Fetches each key, all at once.
    public func fetch(keys: [Data], in space: SharedSpace, lease: Duration?) async throws -> [SharedFetch] {
        try await withThrowingTaskGroup(of: (Int, SharedFetch).self) { group in
            for (place, key) in keys.enumerated() {
                group.addTask { (place, try await self.fetch(key, in: space, lease: lease)) }
            }
            var found = [SharedFetch](repeating: .missing, count: keys.count)
            for try await (place, fetch) in group { found[place] = fetch }
            return found
        }
    }

    /// The position itself.
    public func positionToKeep(_ position: String, in space: SharedSpace) -> String { position }

    /// Removes the entry of a key for all nodes, with their copies.
    ///
    /// A tier that can delete the entry alone, if it is still this one, has a form of its own: a refresh ahead discards entries that are good.
    public func discard(_ entry: SharedEntry, forKey key: Data, in space: SharedSpace) async throws {
        try await remove([.key(key)], in: space)
    }
}

/// The entries of one cache in a tier: another version or codec has other entries.
public struct SharedSpace: Hashable, Sendable {
    /// The name, version and codec of the cache, as one text.
    public let name: String

    /// Creates a space.
    ///
    /// - Parameter name: The name.
    public init(_ name: String) { self.name = name }
}

/// An entry of a tier.
public struct SharedEntry: Hashable, Sendable {
    /// The encoded value.
    public var payload: Data

    /// What is left of the age of the entry; nil if the tier decides.
    public var age: Duration?

    /// The tags of the entry.
    public var tags: Set<String>

    /// The bytes that are stored with the value; nil if there are none.
    public var extendedData: Data?

    /// A Boolean value that indicates whether the entry says that the key has no value; then the payload is empty.
    public var isAbsent: Bool

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - payload: The encoded value.
    ///   - age: What is left of its age; nil if the tier decides.
    ///   - tags: The tags.
    ///   - extendedData: The bytes that are stored with the value.
    ///   - isAbsent: Whether the key has no value.
    public init(
        payload: Data, age: Duration?, tags: Set<String> = [], extendedData: Data? = nil, isAbsent: Bool = false
    ) {
        (self.payload, self.age, self.tags) = (payload, age, tags)
        (self.extendedData, self.isAbsent) = (extendedData, isAbsent)
    }
}

/// What a tier has for a key.
public enum SharedFetch: Hashable, Sendable {
    /// An entry.
    case entry(SharedEntry)
    /// No entry: this node may make it.
    case lease(SharedLease)
    /// No entry, and no lease: another node makes it, or no lease was asked for.
    case missing
}

/// The right to make the entry of a key.
public struct SharedLease: Hashable, Sendable {
    /// A text that no other lease has.
    public let token: String

    /// The removals that the tier had done when it gave the lease.
    public let stamp: String

    /// Creates a lease.
    ///
    /// - Parameters:
    ///   - token: A text that no other lease has.
    ///   - stamp: The removals that were done.
    public init(token: String, stamp: String) { (self.token, self.stamp) = (token, stamp) }
}

/// What is removed for all nodes.
public enum SharedRemoval: Hashable, Sendable {
    /// The entry of a key.
    case key(Data)
    /// The entries that have a tag.
    case tag(String)
    /// The entries whose keys begin with these bytes.
    case prefix(Data)
    /// All entries.
    case all
}

/// Messages of other nodes.
public struct SharedChanges: Hashable, Sendable {
    /// A message.
    public enum Message: Hashable, Sendable {
        /// Copies of the entries are out of date.
        case removed(SharedRemoval)
        /// An entry was made for which a node waits, or its lease was given back.
        case loaded(Data)
    }

    /// The messages, in the order in which they were sent.
    public var messages: [Message]

    /// The position behind them.
    public var position: String

    /// A Boolean value that indicates whether no message in front of these was lost; if false, every copy may be out of date.
    public var isComplete: Bool

    /// A Boolean value that indicates whether the tier had no more messages.
    public var isUpToDate: Bool

    /// A Boolean value that indicates whether the tier has lost writes and removals that it had confirmed.
    ///
    /// Then it serves no entry from before.
    public var hasLostWrites: Bool

    /// Creates a batch of messages.
    ///
    /// - Parameters:
    ///   - messages: The messages.
    ///   - position: The position behind them.
    ///   - isComplete: Whether none was lost in front of them.
    ///   - isUpToDate: Whether there were no more.
    ///   - hasLostWrites: Whether the tier has lost what it had confirmed.
    public init(
        messages: [Message], position: String, isComplete: Bool, isUpToDate: Bool, hasLostWrites: Bool = false
    ) {
        (self.messages, self.position, self.isComplete, self.isUpToDate) = (messages, position, isComplete, isUpToDate)
        self.hasLostWrites = hasLostWrites
    }
}

/// What a tier throws that answers, and does not do what it is asked: it is full, may not write, or lacks a right.
public struct SharedRefusal: Error, Hashable, CustomStringConvertible {
    /// A sentence that says what the tier has said.
    public let description: String

    /// Creates a refusal.
    ///
    /// - Parameter description: A sentence that says what the tier has said.
    public init(_ description: String) { self.description = description }
}
