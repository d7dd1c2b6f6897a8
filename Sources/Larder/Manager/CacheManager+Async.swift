public import Foundation
internal import LarderStore

/// The calls that may wait for the disk, for tasks.
///
/// None of them blocks the executor of the task.
extension CacheManager {
    /// Opens the store `<caches directory>/<name>.sqlite`, and creates it if it is missing.
    ///
    /// The call blocks no thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - name: The name of the file, without its ending.
    ///   - configuration: The settings of the manager.
    /// - Throws: An opening error, see ``CacheError``.
    public static func open(
        name: String, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(name: name, configuration: configuration) }
    }

    /// Opens the store in a file, and creates it and its folder if they are missing.
    ///
    /// The call blocks no thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - configuration: The settings of the manager.
    /// - Throws: An opening error, see ``CacheError``.
    public static func open(
        url: URL, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in try CacheManager(url: url, configuration: configuration) }
    }

    /// Closes the store: later calls throw ``CacheError/Code/closed``.
    ///
    /// - Throws: `.reentrant`.
    public func close() async throws(CacheError) { try await offload { () throws(CacheError) in try self.close() } }

    /// Stores the times of the last accesses, except those within ``CacheOptions/accessGrain`` of the stored
    /// ones.
    ///
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    public func flush() async throws(CacheError) { try await offload { () throws(CacheError) in try self.flush() } }

    /// Returns the name, version, count, size and time of the last open of each cache, sorted by name.
    ///
    /// - Throws: A read error, see ``CacheError``.
    /// - Complexity: O(n) in the number of entries of all caches.
    public func cacheInfo() async throws(CacheError) -> [CacheInfo] {
        try await offload { () throws(CacheError) in try self.cacheInfo() }
    }

    /// Removes a cache: its handles then find nothing, and their writes throw ``CacheError/Code/superseded``.
    ///
    /// - Parameter name: The name of the cache. If there is none of this name, nothing changes.
    /// - Throws: A write error, see ``CacheError``.
    public func removeCache(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeCache(named: name) }
    }

    /// Removes all entries of all caches in one step.
    ///
    /// - Throws: A write error, see ``CacheError``.
    public func removeAll() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }
}
