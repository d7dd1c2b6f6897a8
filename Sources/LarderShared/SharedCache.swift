public import Foundation
public import Larder
public import LarderLocks
internal import LarderStore

/// A cache that this node shares with other nodes through a tier, such as a server.
///
/// ```swift
/// let shared = try await articles.shared(through: tier)
/// let article = try await shared.value(forKey: 7) { id in try await api.article(id) }
/// try await shared.setValue(article, forKey: 7, tags: ["author:3"])
/// ```
///
/// A read looks in memory, on the disk and in the tier. If none has a value, one node loads it while the others wait. A write or
/// removal that has returned is done in the tier and on this node, and the other nodes delete their copies when they get the message.
///
/// If the tier cannot be reached, no call fails: each node uses its copies and loads for itself, and sends its removals later. See
/// <doc:SharingBetweenMachines> for what is promised and what is not.
///
/// As long as it is open, writes and removals through ``local`` throw `.invalidConfiguration`: no other node would hear of them.
public final class SharedCache<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let node: SharedNode<Key, Value>

    /// The cache of this node: a read sees its copies alone, and a write is refused.
    public let local: Cache<Key, Value>

    private let place: SharedPlace

    init(_ node: SharedNode<Key, Value>, _ local: Cache<Key, Value>, _ place: SharedPlace) {
        (self.node, self.local, self.place) = (node, local, place)
    }

    deinit {
        node.stop()
        // A load of a generator goes on, and would store what another process may have changed.
        if !node.isStoring && !node.cache.isGenerating { return place.leave() }
        Task { [node, place] in
            await node.close()
            place.leave()
        }
    }

    /// The name under which the cache was opened.
    public var name: String { local.name }

    /// What the cache has done with its tier.
    ///
    /// Hits and misses of this node are in the statistics of ``local``.
    public var statistics: SharedStatistics {
        node.state.withLock { $0.statistics }
    }

    /// The state of the cache: whether it is current, alone, or refused by its tier.
    public var health: SharedHealth { node.health }

    /// A Boolean value that indicates whether this node knows all that others have removed, and they what it has removed.
    ///
    /// A full server can refuse its writes all the same.
    package var hasCaughtUp: Bool {
        node.tier.hasMessages && node.state.withLock { $0.isCurrent && $0.pending.isEmpty }
    }

    /// Waits until this node knows all that others have written and removed up to now.
    ///
    /// Call it where a program is told by another way that something has changed, or after its process stood still.
    ///
    /// - Throws: `.storageUnavailable` if the tier cannot be reached. Else a write error, see ``Larder/CacheError``.
    public func catchUp() async throws { try await node.catchUp() }

    /// Ends the connection of the cache with its tier; later calls throw ``Larder/CacheError/Code/closed``.
    ///
    /// It waits for writes and removals that run, and for what is being stored. The cache of this node stays open. Call it before you
    /// close the manager. Removals that could not be sent are kept for the next opening.
    public func close() async {
        await node.close()
        place.leave()
    }

    // MARK: Reading

    /// Returns the value of a key from memory, the disk or the tier; nil if there is none.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``Larder/CacheError``, or `CancellationError`. A failure of the tier is none.
    @inlinable
    public func value(forKey key: Key) async throws -> Value? {
        if let value = hit(key) { return value }
        return try await found(key)
    }

    /// Returns whether memory, the disk or the tier have a value for a key.
    ///
    /// - Throws: A read error, see ``Larder/CacheError``, or `CancellationError`. A failure of the tier is none.
    public func contains(_ key: Key) async throws -> Bool { try await value(forKey: key) != nil }

    /// Returns the value of a key; if there is none, `generate` loads it, on one node for all.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: The maximum age of a value that is loaded, in place of the cache's; not one since the last access.
    ///   - tags: The tags by which `removeAll(tagged:)` finds a value that is loaded.
    ///   - generate: Loads the value in a task of its own. If a key is removed at that time, its callers get the value all the same,
    ///     and no node stores it.
    /// - Throws: A load error, see ``Larder/CacheError``.
    @inlinable
    public func value(
        forKey key: Key, maxAge: MaxAge? = nil, tags: Set<String> = [],
        generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = hit(key) { return value }
        return try await loaded(key, maxAge, tags, generate)
    }

    /// Returns the value of a key; if there is none, `generate` gets the expired entry of this node and returns a new value.
    ///
    /// - Returns: The value; nil if `generate` returns ``Larder/Generated/none(for:)`` on any node, as long as that holds.
    /// - Throws: A load error, see ``Larder/CacheError``.
    @inlinable
    public func value(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> Value? {
        if let value = hit(key) { return value }
        return try await entry(key, acceptsAbsence: true, generate)?.value
    }

    /// Returns the entry of a key; if there is none, `generate` gets the expired entry of this node and returns a new one.
    ///
    /// - Throws: A load error, see ``Larder/CacheError``. `.invalidConfiguration` if `generate` returns
    ///   ``Larder/Generated/none(for:)``.
    public func entry(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value> {
        try await local.requireOne(key, entry(key, acceptsAbsence: false, generate))
    }

    /// Returns the values of many keys; one call of `generate` loads those that no node has or loads.
    ///
    /// Keys that `generate` returns nothing for stay without a value. If other nodes load some of the keys and fail, `generate` is
    /// called again for these.
    ///
    /// - Throws: A load error, see ``Larder/CacheError``.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] { try await values(keys, generate) }

    /// Returns the values of many keys as a policy says; `generate` loads those that no node has or loads.
    ///
    /// It is the same as that of a ``Larder/Cache``, with the tier asked for all keys at once. If other nodes load some of the keys and fail,
    /// `generate` is called again for these.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the keys to load, and the entries that this node has of them, which have expired or are due.
    /// - Returns: The values of the keys that have one.
    /// - Throws: A load error, see ``Larder/CacheError``.
    public func values(
        forKeys keys: some Sequence<Key>, policy: GenerationPolicy = .init(),
        generate: @escaping @Sendable ([Key], [Key: CacheEntry<Key, Value>]) async throws -> [Key: Generated<Value>]
    ) async throws -> [Key: Value] {
        try node.requireOpen()
        return try await loader(policy, acceptsAbsence: true) { try await Cache.results($0, generate) }.values(keys)
    }

    /// Returns the values that memory, the disk or the tier have of many keys; the tier is asked for all at once.
    ///
    /// - Throws: A read error, see ``Larder/CacheError``, or `CancellationError`. A failure of the tier is none.
    public func values(forKeys keys: some Sequence<Key>) async throws -> [Key: Value] { try await values(keys, nil) }

    private func values(
        _ keys: some Sequence<Key>, _ generate: (@Sendable ([Key]) async throws -> [Key: Value])?
    ) async throws -> [Key: Value] {
        try node.requireOpen()
        var (known, rest, seen) = ([Key: Value](), [Cache<Key, Value>.LoadItem](), Set<StoredKey>())
        for key in keys where known[key] == nil {
            known[key] = hit(key)
            let stored = try local.storedKey(of: key)
            if known[key] == nil, seen.insert(stored).inserted { rest.append((key, stored)) }
        }
        if rest.isEmpty { return known }
        let make = generate.map { generate in
            { @Sendable (rows: [Cache<Key, Value>.LoadRow]) async throws -> [Generated<Value>?] in
                let made = try await generate(rows.map { $0.key })
                return rows.map { row in made[row.key].map { .value($0) } }
            }
        }
        let loaded = try await node.load(rest, needsValue: false, acceptsAbsence: false, make)
        return zip(rest, loaded).reduce(into: known) { $0[$1.0.key] = $1.1?.value }
    }

    /// Returns a callable value that reads this cache and loads what is missing, on one node for all.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values. A node that refreshes ahead takes the entry out of the tier until it has stored the new
    ///     one; see ``Larder/GenerationPolicy/refreshAhead``.
    ///   - generate: Loads a value.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let load = generator(policy, acceptsAbsence: false) { key, _ in .value(try await generate(key)) }
        return ValueGenerator { try await self.local.requireOne($0, load($0)) }
    }

    /// Returns a callable value that reads this cache and loads what is missing, with the old entry in hand.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the key and its entry on this node, which has expired or is due; nil if there is none.
    public func generator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> { generator(policy, acceptsAbsence: true, generate) }

    /// Returns a callable value whose calls for single keys become calls for many, on one node for all.
    ///
    /// The keys that no node has and that are asked for within a short time are loaded by one call of `load`.
    ///
    /// > Warning: `load` must not ask for a value whose own load uses this loader. Two callers can then wait for each other forever, unless
    /// the policy has a timeout.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values; refreshes are gathered too.
    ///   - window: The time from the first key to the call of `load`.
    ///   - limit: The number of keys with which `load` is called at once.
    ///   - load: Gets keys, each once. Keys that it returns nothing for have no value.
    public func batching(
        _ policy: GenerationPolicy = .init(), window: Duration = .milliseconds(2), limit: Int = 100,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Generated<Value>]
    ) -> ValueGenerator<Key, Value?> {
        let (batch, name) = (local.batchLoader(window: window, limit: limit, load), name)
        return generator(policy) { key, _ in
            try batch.check(name)
            return try await batch.value(key) ?? .none(for: .seconds(0))
        }
    }

    private func generator(
        _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        let load = loader(policy, acceptsAbsence: acceptsAbsence) { [try await generate($0[0].key, $0[0].entry)] }
        return ValueGenerator { key in
            // The handle stays open as long as the generator is there.
            try self.node.requireOpen()
            return try await load.value(key)
        }
    }

    private func loader(
        _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable ([Cache<Key, Value>.LoadRow]) async throws -> [Generated<Value>?]
    ) -> PolicyLoader<Key, Value> {
        let (node, time) = (node, node.cache.nanoseconds)
        return PolicyLoader(
            node.cache, policy, acceptsAbsence: acceptsAbsence, node.staleWindow,
            skipsCopies: { node.isSilent.load(ordering: .relaxed) },
            node.loading(acceptsAbsence: acceptsAbsence, policy.noting(time, generate)))
    }

    // MARK: Parts

    /// The value in memory, unless the tier was silent for too long.
    @inlinable @inline(__always)
    func hit(_ key: Key) -> Value? { node.isSilent.load(ordering: .relaxed) ? nil : local.valueInMemoryAlone(key) }

    @usableFromInline
    func found(_ key: Key) async throws -> Value? {
        try node.requireOpen()
        let stored = try local.storedKey(of: key)
        return try await node.load([(key, stored)], needsValue: false, acceptsAbsence: false, nil)[0]?.value
    }

    @usableFromInline
    func loaded(
        _ key: Key, _ maxAge: MaxAge?, _ tags: Set<String>, _ generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        let found = try await entry(key, acceptsAbsence: false) { key, _ in
            .value(try await generate(key), maxAge: maxAge, tags: tags)
        }
        return try local.requireOne(key, found).value
    }

    @usableFromInline
    func entry(
        _ key: Key, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value>? {
        try await node.entry(key, acceptsAbsence: acceptsAbsence, generate)
    }
}

extension Cache {
    /// Opens the cache together with those of other nodes.
    ///
    /// Open the caches under the same name, version and codec on all nodes. The first time, and if messages of other nodes were lost,
    /// the copies on this node are deleted.
    ///
    /// The result is another handle. As long as it is open, writes and removals through this one throw `.invalidConfiguration`. What
    /// `maintain()`, limits and the manager remove is removed on this node alone.
    ///
    /// - Parameters:
    ///   - tier: What connects the nodes.
    ///   - options: The options.
    /// - Returns: The shared cache, once this node knows what others have removed, or after ``LarderShared/SharedOptions/catchUpLimit``.
    /// - Throws: `.invalidConfiguration` for numbers in the options that make no sense, for an age since the last
    ///   access, if the cache is shared already, and if another process or manager shares caches of the file. Else a write error,
    ///   see ``Larder/CacheError``.
    public func shared(
        through tier: any SharedTier, options: SharedOptions = .init()
    ) async throws(CacheError) -> SharedCache<Key, Value> {
        try options.check(name)
        if case .sinceAccess = maxAge.rule {
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(name)\" cannot be shared with an age since the last access, of which other nodes do not know. Use an age"
                    + " since the write.")
        }
        guard try takeSharing() else {
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(name)\" cannot be shared: another process or manager shares caches of this file. Give each process a file of"
                    + " its own.")
        }
        guard let place = SharedPlace(self.place, tier, SharedForm.space(declaration), leaving: endSharing) else {
            leaveSharing()
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(name)\" is shared already, or another manager shares it through the same object. Use that handle, close"
                    + " it before, or create a tier for each manager.")
        }
        beginSharing()
        do throws(CacheError) {
            let node = try await SharedNode(handleForCopies, tier, options)
            await node.start()
            return SharedCache(node, self, place)
        } catch {
            place.leave()
            throw error
        }
    }
}

/// The writes and removals, which reach all nodes.
///
/// A call returns when the tier and this node have done it. If the tier cannot be reached, a removal is noted in the store of this node
/// and sent later. A call does not end before that if its task is cancelled.
extension SharedCache {
    /// Writes the value of a key on all nodes; nil removes it.
    ///
    /// If the tier cannot be reached, this node alone has the value. When the tier is available again, the value is deleted, because
    /// another node may have written a later one.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the value against the cost limit of the memory of this node.
    ///   - maxAge: The maximum age of this entry, in place of the cache's; not one since the last access.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` finds the entry.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = []
    ) async throws {
        guard let value else {
            try await removeValue(forKey: key)
            return
        }
        try node.requireOpen()
        var attributes = local.whole(
            EntryAttributes(cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags), key, value)
        attributes.maxAge = node.drawn(attributes.maxAge)
        let stored = try local.storedKey(of: key)
        attributes.payload = try local.encoded(value, of: stored)
        let entry = try node.entry(attributes.payload ?? Data(), attributes)
        if node.options.localMaxAge != nil { attributes.maxAge = node.local(attributes.maxAge) }
        let copy = try node.cache.copy(of: value, forKey: key, attributes)
        try await node.set(copy, entry)
    }

    /// The number of values that are written at once.
    private static var batchCount: Int { 256 }

    /// Sets values on all nodes, many at once, each as by ``setValue(_:forKey:cost:maxAge:extendedData:tags:)``.
    ///
    /// If it throws, some of them are set.
    ///
    /// - Parameters:
    ///   - values: The values, by their keys.
    ///   - tags: The tags by which `removeAll(tagged:)` finds the entries.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    public func setValues(_ values: [Key: Value], tags: Set<String> = []) async throws {
        var rest = Array(values)[...]
        while !rest.isEmpty {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (key, value) in rest.prefix(Self.batchCount) {
                    group.addTask { try await self.setValue(value, forKey: key, tags: tags) }
                }
                try await group.waitForAll()
            }
            rest = rest.dropFirst(Self.batchCount)
        }
    }

    /// Removes a key on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeValue(forKey key: Key) async throws -> SharedOutcome {
        try await removeValues(forKeys: CollectionOfOne(key))
    }

    /// Removes keys on all nodes; absent keys are skipped.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeValues(forKeys keys: some Sequence<Key>) async throws -> SharedOutcome {
        try node.requireOpen()
        let keys = try keys.map { SharedForm.bytes(of: try local.storedKey(of: $0)) }
        return keys.isEmpty ? .everywhere : try await node.remove(keys.map { .key($0) }, keys)
    }

    /// Removes the entries that have a tag on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeAll(tagged tag: String) async throws -> SharedOutcome {
        try node.requireOpen()
        return try await node.remove([.tag(CBORText.normalized(tag))], nil)
    }

    /// Removes the entries whose keys are strings that begin so, on all nodes.
    ///
    /// The bytes of UTF-8 in normal form C are compared. Use it for few prefixes, and tags for many: a tier that would have to remember
    /// too many of different lengths removes all entries instead.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeAll(prefix: String) async throws -> SharedOutcome {
        try node.requireOpen()
        return try await node.remove([.prefix(SharedForm.bytes(of: .text(CBORText.normalized(prefix))))], nil)
    }

    /// Removes all entries on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``Larder/CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeAll() async throws -> SharedOutcome {
        try node.requireOpen()
        return try await node.remove([.all], nil)
    }
}

extension SharedCache: AsyncKeyedCache {
    /// Writes the value of a key on all nodes, without anything else; nil removes it.
    @_disfavoredOverload
    public func setValue(_ value: Value?, forKey key: Key) async throws {
        try await setValue(value, forKey: key, cost: nil)
    }

    /// Removes all entries on all nodes.
    @_disfavoredOverload
    public func removeAll() async throws { let _: SharedOutcome = try await removeAll() }

    /// Returns the value of a key; if there is none, `generate` loads it, on one node for all.
    @_disfavoredOverload
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value { try await value(forKey: key, maxAge: nil, generate: generate) }
}

/// Who knows of a removal when its call returns.
public enum SharedOutcome: Hashable, Sendable {
    /// The tier has it, and the other nodes get its message.
    case everywhere
    /// This node has it, and tells the tier once that can be reached. Its store keeps the note: if its files are lost before, so is the
    /// removal.
    case pending
}
