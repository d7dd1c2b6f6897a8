public import Foundation

extension MemoryCache where Key: Codable, Value: Codable {
    /// Creates a cache with the entries of a snapshot, or an empty cache if there is no such file.
    ///
    /// ```swift
    /// let sessions = try MemoryCache<String, Session>(restoring: file, countLimit: 1_000)
    /// ```
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written.
    ///   - countLimit: The maximum number of entries. By default there is no limit.
    ///   - costLimit: The maximum total cost of the entries. By default there is no limit.
    ///   - maxAge: The maximum age of an entry, counted from when it was set in the other cache. The default is
    ///     unlimited.
    ///   - skipped: Called with a sentence about each entry that could not be read.
    /// - Throws: `.foreignFile`, `.typeMismatch` or `.newerSchema` if the file is not such a snapshot.
    ///   `.storageUnavailable` if the file exists and cannot be read.
    public convenience init(
        restoring url: URL, countLimit: Int = .max, costLimit: Int = .max, maxAge: MaxAge = .unlimited,
        skipped: ((String) -> Void)? = nil
    ) throws(CacheError) {
        self.init(countLimit: countLimit, costLimit: costLimit, maxAge: maxAge)
        do throws(CacheError) {
            try load(from: url, skipped: skipped)
        } catch  where (error.underlying as? CocoaError)?.code == .fileReadNoSuchFile {
            // Nothing was saved yet.
        }
    }
}
