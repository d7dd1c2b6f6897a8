public import Foundation

/// Saving and loading for tasks: neither blocks the caller's executor.
extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes every entry into a file, which is replaced in one step, for a task.
    public func save(to url: URL) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.save(to: url) }
    }

    /// Adds the entries of a file that `save(to:)` has written, for a task.
    @discardableResult
    public func load(
        from url: URL, skipped: (@Sendable (String) -> Void)? = nil
    ) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.load(from: url, skipped: skipped) }
    }
}
