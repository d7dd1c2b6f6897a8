public import Foundation

/// The calls that may wait for the disk, for tasks: none of them blocks the caller's executor.
extension CacheManager {
    /// Opens the store `<caches directory>/<name>.sqlite`, and creates it if it is missing.
    ///
    /// - Parameters:
    ///   - name: The name of the store; no slash, no NUL, not empty.
    ///   - configuration: How the store works.
    /// - Throws: `.invalidName`, `.invalidConfiguration`, `.storageUnavailable`, `.storageFull`, `.busy`, `.corrupt`,
    ///   `.foreignFile`, `.newerSchema`, `.readOnly`.
    public static func open(
        name: String, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(name: name, configuration: configuration) }
    }

    /// Opens the store in a file, and creates it and its folder if they are missing.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - configuration: How the store works.
    /// - Throws: `.invalidName`, `.invalidConfiguration`, `.storageUnavailable`, `.storageFull`, `.busy`, `.corrupt`,
    ///   `.foreignFile`, `.newerSchema`, `.readOnly`.
    public static func open(
        url: URL, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(url: url, configuration: configuration) }
    }

    /// Opens a cache with the default codec: raw bytes for `Data`, CBOR for everything else.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: The version of the entries: if they were written under another one, they are purged.
    ///   - maxAge: How long this handle serves an entry.
    ///   - options: How the cache works.
    /// - Throws: `.invalidName`, `.invalidConfiguration`, `.typeMismatch`, `.closed`, `.storageFull`, `.busy`.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init()
    ) async throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try await cache(named: name, version: version, maxAge: maxAge, options: options, codec: .standard)
    }

    /// Opens a cache with a codec of your choice.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: The version of the entries: if they were written under another one, they are purged.
    ///   - maxAge: How long this handle serves an entry.
    ///   - options: How the cache works.
    ///   - codec: How values become bytes. Entries that were written with another codec are purged.
    /// - Throws: `.invalidName`, `.invalidConfiguration`, `.typeMismatch`, `.closed`, `.storageFull`, `.busy`.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        codec: ValueCodec<Value>
    ) async throws(CacheError) -> Cache<Key, Value> {
        try await offload { () throws(CacheError) in
            try self.cache(named: name, version: version, maxAge: maxAge, options: options, codec: codec)
        }
    }

    /// Does several reads and writes in one step: all or nothing, in both tiers, also towards other processes.
    ///
    /// - Parameter body: Called exactly once, on another thread, while no other thread or process writes to the store.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws, or a ``CacheError``; then nothing has changed.
    @discardableResult
    public func transaction<R: Sendable>(
        _ body: @escaping @Sendable (borrowing CacheTransaction) throws -> R
    ) async throws -> R {
        try await offload { try self.transaction(body) }
    }
}
