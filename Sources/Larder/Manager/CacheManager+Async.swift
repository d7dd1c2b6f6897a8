public import Foundation
internal import LarderStore

/// The calls that may wait for the disk, for tasks.
///
/// None of them blocks the executor of the task.
extension CacheManager {
    /// Opens the store `<caches directory>/<name>.sqlite`, and creates it if it is missing, for a task.
    public static func open(
        name: String, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(name: name, configuration: configuration) }
    }

    /// Opens the store in a file, and creates it and its folder if they are missing, for a task.
    public static func open(
        url: URL, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(url: url, configuration: configuration) }
    }

    /// Closes the store: later calls throw ``CacheError/Code/closed``, for a task.
    public func close() async throws(CacheError) { try await offload { () throws(CacheError) in try self.close() } }

    /// Stores the times of the last accesses, except those within ``CacheOptions/accessGrain`` of the stored ones, for
    /// a task.
    public func flush() async throws(CacheError) { try await offload { () throws(CacheError) in try self.flush() } }

    /// Returns the name, version, count, size and time of the last open of each cache, sorted by name, for a task.
    public func cacheInfo() async throws(CacheError) -> [CacheInfo] {
        try await offload { () throws(CacheError) in try self.cacheInfo() }
    }

    /// Removes a cache: its handles then find nothing, and their writes throw ``CacheError/Code/superseded``, for a
    /// task.
    public func removeCache(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeCache(named: name) }
    }

    /// Removes all entries of all caches in one step, for a task.
    public func removeAll() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }
}
