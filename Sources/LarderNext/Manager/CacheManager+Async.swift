public import Foundation
internal import LarderStore

/// The calls that may wait for the disk, for tasks: none of them blocks the caller's executor.
extension CacheManager {
    /// Opens the store `<caches directory>/<name>.sqlite`; see ``init(name:configuration:)``.
    public static func open(
        name: String, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(name: name, configuration: configuration) }
    }

    /// Opens the store in a file; see ``init(url:configuration:)``.
    public static func open(
        url: URL, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(url: url, configuration: configuration) }
    }

    /// Closes the store; see the synchronous form.
    public func close() async throws(CacheError) { try await offload { () throws(CacheError) in try self.close() } }

    /// Writes when entries were last accessed; see the synchronous form.
    public func flush() async throws(CacheError) { try await offload { () throws(CacheError) in try self.flush() } }

    /// Returns what is known of each cache; see the synchronous form.
    public func cacheInfo() async throws(CacheError) -> [CacheInfo] {
        try await offload { () throws(CacheError) in try self.cacheInfo() }
    }

    /// Removes a cache; see the synchronous form.
    public func removeCache(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeCache(named: name) }
    }

    /// Empties all caches in one step; see the synchronous form.
    public func removeAll() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }
}
