public import Foundation
internal import LarderStore

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
    /// - Throws: A write error, see ``CacheError``. A failure of the tier is none.
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = []
    ) async throws {
        guard let value else {
            try await removeValue(forKey: key)
            return
        }
        try node.requireOpen()
        var attributes = EntryAttributes(cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags)
        let stored = try local.stored(key)
        attributes.payload = try local.codec.encode(value, cache: name, key: stored.name)
        let entry = try node.entry(attributes.payload ?? Data(), attributes)
        attributes.maxAge = node.options.localMaxAge == nil ? maxAge : node.local(maxAge)
        let write = try node.cache.write(value, forKey: key, attributes)
        try await node.set(write, entry)
    }

    /// Removes a key on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeValue(forKey key: Key) async throws -> SharedOutcome {
        try await removeValues(forKeys: CollectionOfOne(key))
    }

    /// Removes keys on all nodes; absent keys are skipped.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeValues(forKeys keys: some Sequence<Key>) async throws -> SharedOutcome {
        try node.requireOpen()
        let keys = try local.pairs(keys).map { SharedForm.bytes(of: $0.stored) }
        return keys.isEmpty ? .everywhere : try await node.remove(keys.map { .key($0) }, keys)
    }

    /// Removes the entries that have a tag on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeAll(tagged tag: String) async throws -> SharedOutcome {
        try node.requireOpen()
        return try await node.remove([.tag(CBORText.normalized(tag))], nil)
    }

    /// Removes all entries on all nodes.
    ///
    /// - Returns: Whether all nodes were told, or will be.
    /// - Throws: A write error, see ``CacheError``. A failure of the tier is none.
    @discardableResult
    public func removeAll() async throws -> SharedOutcome {
        try node.requireOpen()
        return try await node.remove([.all], nil)
    }
}

/// Who knows of a removal when its call returns.
public enum SharedOutcome: Hashable, Sendable {
    /// The tier has it, and the other nodes get its message.
    case everywhere
    /// This node has it, and tells the tier once that can be reached. Its store keeps the note: if its files are lost before, so is the
    /// removal.
    case pending
}
