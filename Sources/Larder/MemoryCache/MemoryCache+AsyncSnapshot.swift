public import Foundation

/// Saving and loading for tasks: neither blocks the caller's executor.
extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes every entry into a file, which is replaced in one step.
    public func save(to url: URL) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.save(to: url) }
    }

    /// Adds the entries of a file that `save(to:)` has written.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written; else the call throws.
    ///   - skipped: Called with one sentence for each item that was left out because it cannot be read.
    @discardableResult
    public func load(
        from url: URL, skipped: (@Sendable (String) -> Void)? = nil
    ) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.load(from: url, skipped: skipped) }
    }
}
