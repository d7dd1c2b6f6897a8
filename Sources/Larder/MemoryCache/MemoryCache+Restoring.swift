public import Foundation
internal import LarderLocks

extension MemoryCache where Key: Codable, Value: Codable {
    /// Creates a cache with the entries of a snapshot, or an empty cache if there is no such file.
    ///
    /// ```swift
    /// let sessions = try MemoryCache<String, Session>(restoring: file, countLimit: 1_000)
    /// ```
    ///
    /// Every parameter but the first and the last is that of the plain initializer.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written.
    ///   - countLimit: The maximum number of entries. By default there is no limit.
    ///   - costLimit: The maximum total cost of the entries. By default there is no limit.
    ///   - byteLimit: The maximum number of bytes that the entries take; nil for any.
    ///   - maxAge: The maximum age of an entry, counted from when it was set in the other cache.
    ///   - clearsOnMemoryPressure: A Boolean value that indicates whether the cache follows the system's memory pressure.
    ///   - pressureResponse: What a warning removes.
    ///   - clearsInBackground: A Boolean value that indicates whether the cache is emptied when the app goes into the background.
    ///   - clock: Called by each call that needs the time; nil for the system's clock.
    ///   - onRemoval: Called once for each value that leaves.
    ///   - skipped: Called with a sentence about each entry that could not be read.
    /// - Throws: `.foreignFile`, `.typeMismatch` or `.newerSchema` if the file is not such a snapshot.
    ///   `.storageUnavailable` if the file exists and cannot be read.
    public convenience init(
        restoring url: URL, countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int? = nil,
        maxAge: MaxAge = .unlimited, clearsOnMemoryPressure: Bool = true, pressureResponse: PressureResponse = .half,
        clearsInBackground: Bool = false, clock: (@Sendable () -> Date)? = nil, onRemoval: OnRemoval? = nil,
        skipped: ((String) -> Void)? = nil
    ) throws(CacheError) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit ?? .max, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, pressureResponse: pressureResponse,
            clearsInBackground: clearsInBackground, clock: clock, onRemoval: onRemoval)
        try loadIfPresent(from: url, replaces: true, skipped ?? { _ in })
    }

    /// Adds the entries of a snapshot, if there is one.
    func loadIfPresent(from url: URL, replaces: Bool, _ skipped: (String) -> Void) throws(CacheError) {
        do throws(CacheError) {
            _ = try load(from: url, replaces: replaces, skipped)
        } catch  where (error.underlying as? CocoaError)?.code == .fileReadNoSuchFile {
            // Nothing was saved yet.
            noteSnapshot(url)
        }
    }

    /// Notes that the entries of a snapshot were added, so that it may be overwritten.
    func noteSnapshot(_ url: URL) {
        snapshots.withLock { $0[SnapshotFile.path(of: url), default: 0] += 0 }
    }
}
