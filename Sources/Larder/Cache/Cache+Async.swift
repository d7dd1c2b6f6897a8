public import Foundation
internal import LarderStore

/// The reads for tasks.
///
/// `value(forKey:)` returns a value in memory at once. Other reads run on threads that may wait for the disk.
///
/// At the top level of a `main.swift`, the compiler chooses the synchronous forms even with `await`. Call the
/// asynchronous forms in a function.
extension Cache {
    /// Returns the value of a key; nil if there is none that may be served.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``. `.undecodable` if the value is of another type.
    public func value(forKey key: Key) async throws(CacheError) -> Value? {
        if let value = hit(key) { return value }
        return try await reading { () throws(CacheError) in try self.find(key) }
    }

    /// Returns the entry of a key: the value and everything that is stored with it.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - allowingExpired: A Boolean value that indicates whether an expired entry is returned, if it is still stored.
    /// - Throws: A read error, see ``CacheError``. `.undecodable` if the value is of another type.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) async throws(CacheError) -> CacheEntry<Key, Value>? {
        try await reading { () throws(CacheError) in
            try self.entry(forKey: key, allowingExpired: allowingExpired)
        }
    }

    /// Returns the metadata of an entry without reading its value; nil if there is none that may be served.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func metadata(forKey key: Key) async throws(CacheError) -> EntryMetadata? {
        try await reading { () throws(CacheError) in try self.metadata(forKey: key) }
    }

    /// Returns the bytes that are stored with a value; nil if there are none, or no value that may be served.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func extendedData(forKey key: Key) async throws(CacheError) -> Data? {
        try await reading { () throws(CacheError) in try self.extendedData(forKey: key) }
    }

    /// Returns whether a key has a value that may be served, without decoding the value.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func contains(_ key: Key) async throws(CacheError) -> Bool {
        try await reading { () throws(CacheError) in try self.contains(key) }
    }

    /// Returns the values of the given keys that have one, at one moment.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func values(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: Value] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.find(keys) }
    }

    /// Returns the entries of the given keys that have one, at one moment.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func entries(
        forKeys keys: some Sequence<Key>
    ) async throws(CacheError) -> [Key: CacheEntry<Key, Value>] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.entries(forKeys: keys) }
    }

    /// Returns the metadata of the given keys that have an entry which may be served, at one moment.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func metadata(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: EntryMetadata] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.metadata(forKeys: keys) }
    }

    /// Runs a read that may wait for the disk.
    func reading<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        // A read of a store in memory waits for the writer, so it would hold one of the few threads.
        rows.store.path == nil ? try await offload(work) : try await ReadQueue.run(work)
    }
}
