public import Foundation
internal import LarderStore

/// The reads for tasks.
///
/// What memory has is returned at once. Other reads run on threads that may wait for the disk.
///
/// At the top level of a `main.swift` the compiler takes the synchronous forms, with `await` or without: call the
/// asynchronous ones in a function.
extension Cache {
    /// Returns the value of a key; see the synchronous form.
    public func value(forKey key: Key) async throws(CacheError) -> Value? {
        if let value = hit(key) { return value }
        return try await reading { () throws(CacheError) in try self.find(key) }
    }

    /// Returns the entry of a key; see the synchronous form.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) async throws(CacheError) -> CacheEntry<Key, Value>? {
        try await reading { () throws(CacheError) in
            try self.entry(forKey: key, allowingExpired: allowingExpired)
        }
    }

    /// Returns what is known of an entry; see the synchronous form.
    public func metadata(forKey key: Key) async throws(CacheError) -> EntryMetadata? {
        try await reading { () throws(CacheError) in try self.metadata(forKey: key) }
    }

    /// Returns the bytes that are stored with a value; see the synchronous form.
    public func extendedData(forKey key: Key) async throws(CacheError) -> Data? {
        try await reading { () throws(CacheError) in try self.extendedData(forKey: key) }
    }

    /// Returns whether a key has a value that may be served; see the synchronous form.
    public func contains(_ key: Key) async throws(CacheError) -> Bool {
        try await reading { () throws(CacheError) in try self.contains(key) }
    }

    /// Returns the values of those keys that have one; see the synchronous form.
    public func values(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: Value] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.find(keys) }
    }

    /// Runs a read that may wait for the disk.
    func reading<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        // In memory a read waits for the writer.
        rows.store.path == nil ? try await offload(work) : try await Workers.run(work)
    }
}
