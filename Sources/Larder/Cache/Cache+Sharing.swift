package import Foundation
internal import LarderLocks
package import LarderStore

/// What the module `LarderShared` uses of a cache beyond its public face.
///
/// Each member says what it is for. Beyond these, other modules know the types that they name: the attributes of an entry, the outcome of a
/// load, and the rows that a load has found.
extension Cache {
    // MARK: The place

    /// The handle by which a shared cache keeps its copies, whose writes are not refused.
    package var handleForCopies: Cache { Cache(forCopiesOf: self) }

    /// What the handles of a cache have in common: two shared caches on it are refused.
    package var place: AnyObject { core }

    /// The name, version and codec, which name the entries in a tier.
    package var declaration: CacheDeclaration { rows.declaration }

    /// Takes the lock of stores that share caches, and returns whether no other store has it.
    package func takeSharing() throws(CacheError) -> Bool {
        try throwing("be shared") { () throws(StoreError) in
            try rows.requireWritable()
            return try rows.store.sharing.take()
        }
    }

    /// Refuses writes and removals of other handles from now on.
    package func beginSharing() { core.isShared.store(true, ordering: .relaxed) }

    /// Returns the lock, if the cache is shared already.
    package func leaveSharing() { rows.store.sharing.leave() }

    /// Ends what ``takeSharing()`` and ``beginSharing()`` have begun, after the handle is deallocated too.
    package var endSharing: @Sendable () -> Void {
        { [core, rows] in
            core.isShared.store(false, ordering: .relaxed)
            rows.store.sharing.leave()
        }
    }

    /// The number of times another store has shared its caches while this one was suspended: the node ends then.
    package var sharingLosses: Int { rows.store.sharing.losses }

    /// Reports what happens between a node and its tier.
    package func report(_ event: CacheEvent) { manager.reporter.report(event, .warning) }

    /// Runs a call of the tier or of the program, which is told if that takes long.
    package func tracing<R>(
        _ action: String, _ key: StoredKey? = nil, _ place: StoreTrace.Call.Place,
        outcome: (R) -> StoreTrace.Call.Outcome = { _ in .done },
        _ body: () async throws -> R
    ) async throws -> R {
        guard let trace = rows.store.trace else { return try await body() }
        return try await trace.following(action, name, key, place, outcome: outcome, body)
    }

    // MARK: Keys and values

    /// The key as it is stored, whose bytes the tier gets.
    package func storedKey(of key: Key) throws(CacheError) -> StoredKey { try stored(key) }

    /// The key that a message of another node names; nil if it is none of this cache.
    package func key(of stored: StoredKey) -> Key? {
        do throws(CacheError) { return try core.keyCodec.key(stored, cache: name) } catch { return nil }
    }

    /// The bytes of a value, for the tier and for the copy on this node.
    package func encoded(_ value: Value, of key: StoredKey) throws(CacheError) -> Data {
        try codec.encode(value, cache: name, key: key.name)
    }

    /// The attributes of a loaded value with those of the rule, before a tier gets them.
    package func whole(_ attributes: EntryAttributes, _ key: StoredKey, _ value: Value) -> EntryAttributes {
        if rule == nil { return attributes }
        return self.key(of: key).map { whole(attributes, $0, value) } ?? attributes
    }

    /// The value in bytes that the tier had.
    package func decoded(_ payload: Data, of key: StoredKey) throws(CacheError) -> Value {
        try codec.decode(payload, cache: name, key: key.name)
    }

    /// The clock of entries, by which ages are turned into those of a tier.
    package var now: Int64 { rows.now() }

    /// The clock by which it is measured how long a load takes.
    package var nanoseconds: @Sendable () -> Int64 { { [time = rows.store.time] in time.nanoseconds() } }

    // MARK: Copies on this node

    /// Returns a value that memory may serve, before a tier is asked.
    @inlinable @inline(__always)
    package func valueInMemoryAlone(_ key: Key) -> Value? { hit(key) }

    /// A value that was encoded for its copy, before the tier is told.
    package struct Copy: Sendable {
        let write: Write
        package var key: StoredKey { write.entry.key }
    }

    /// Encodes a copy.
    package func copy(of value: Value, forKey key: Key, _ attributes: EntryAttributes) throws(CacheError) -> Copy {
        Copy(write: try write(value, forKey: key, attributes))
    }

    /// Writes a copy, and overtakes the loads of its key; removes it instead if a condition does not hold in the transaction.
    package func put(_ copy: Copy, if condition: any ChangeCondition) async throws {
        let change = change([copy.write], if: condition)
        let isWritten = try await !rows.run(change, "set the value").rows.isEmpty
        if !isWritten { try await remove(copy.write.copy.key) }
    }

    // MARK: Notes

    /// The notes of a node: its position among the messages, and its pending removals.
    package func notes() async throws(CacheError) -> [Int64: [UInt8]] {
        try await reading { () throws(CacheError) in
            try self.throwing("read the notes on its tier") { () throws(StoreError) in try self.rows.notes() }
        }
    }

    /// Writes and deletes notes of a node.
    package func save(_ notes: [Int64: [UInt8]?], _ action: String) async throws {
        _ = try await rows.run(Change(.note(notes)), action)
    }

    // MARK: Loads

    /// Returns the entries of keys, in their order; a node asks its tier for those that are missing here, or loads them.
    ///
    /// - Parameters:
    ///   - isLook: A Boolean value that indicates whether nothing is loaded, and no recursion is an error.
    ///   - skipsCopies: Returns whether no copy of this node is served.
    package func load(
        _ keys: [LoadItem], needsValue: Bool, isLook: Bool, skipsCopies: @escaping @Sendable () -> Bool,
        _ generate: @escaping Generate
    ) async throws -> [CacheEntry<Key, Value>?] {
        let now = skipsCopies() ? nil : rows.store.time.now()
        return try await load(
            keys, needsValue: needsValue, isLook: isLook, at: now, isDue: { _ in skipsCopies() }, generate)
    }

    /// A Boolean value that indicates whether callers have what is not stored here yet.
    package var isStoringLoads: Bool { loads.isStoring }

    /// Lets no load that runs store anything, and returns once what has begun is done.
    package func endLoads() async {
        loads.overtake(nil)
        // The writer does one change after the other.
        do { _ = try await rows.run(Change(.note([:])), "end loads") } catch {}
    }

    /// A Boolean value that indicates whether a key is known to have no value.
    package func isKnownToBeAbsent(_ key: StoredKey) -> Bool { isAbsent(key) }

    /// The result of a load, for calls that need one.
    package func requireOne<R>(_ key: Key, _ result: R?) throws(CacheError) -> R { try one(key, result) }

    /// The milliseconds until an entry expires; nil for none, or one that has.
    package func timeLeft(of row: LoadRow) -> Int64? {
        guard let end = row.header?.end, row.entry != nil, end >= rows.now() else { return nil }
        return end == .max ? .max : end - rows.now()
    }
}
