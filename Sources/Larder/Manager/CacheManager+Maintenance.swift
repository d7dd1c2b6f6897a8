public import Foundation
internal import LarderStore

/// The result of `maintain()`.
public struct MaintenanceReport: Hashable, Sendable {
    /// The number of expired entries that were deleted.
    public let expired: Int

    /// The number of entries that were evicted to hold a limit.
    public let trimmed: Int

    /// The number of deleted rows of purged, cleared and removed caches.
    public let reclaimed: Int

    /// The number of deleted value files that no row named.
    public let orphans: Int

    /// The number of bytes by which the database file shrank.
    public let freedBytes: Int64
}

/// The result of `verify(repairing:progress:)`.
public struct VerificationReport: Hashable, Sendable {
    /// A Boolean value that indicates whether no problem was found.
    public var isHealthy: Bool { problems.isEmpty }

    /// The problems, a sentence for each.
    ///
    /// At most a hundred damaged entries are named.
    public let problems: [String]

    /// The number of entries that were checked.
    public let entries: Int

    /// The number of damaged entries that were deleted; 0 if the database was replaced.
    public let repaired: Int

    /// The number of entries that could not be carried over from a damaged database; 0 if it was not replaced.
    public let lost: Int

    /// The damaged database, which was renamed; nil if it was not replaced.
    public let setAside: URL?
}

extension CacheManager {
    /// Deletes expired entries, entries over a limit, retired rows and orphaned files, and shrinks the database file.
    ///
    /// When it returns, everything of that kind that was there at its start is deleted. Files that no row names are
    /// deleted once they are an hour old. Caches that no program has open are included. Other writes run between its
    /// short transactions.
    ///
    /// When something is due, it is also deleted automatically; see ``CacheManager/Configuration/maintenanceInterval``.
    ///
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func maintain() throws(CacheError) -> MaintenanceReport {
        let report = try throwing("be maintained") { () throws(StoreError) in try store.maintain() }
        return MaintenanceReport(
            expired: report.expired, trimmed: report.trimmed, reclaimed: report.reclaimed, orphans: report.orphans,
            freedBytes: report.freedBytes)
    }

    /// Deletes expired entries, entries over a limit, retired rows and orphaned files, and shrinks the database file.
    @discardableResult
    public func maintain() async throws(CacheError) -> MaintenanceReport {
        try await offload { () throws(CacheError) in try self.maintain() }
    }

    /// Checks the whole store, and reports its problems.
    ///
    /// It checks every page of the database, every row, and every value file with its checksum. Values are not decoded.
    ///
    /// - Parameters:
    ///   - repairing: A Boolean value that indicates whether damage is repaired. If the database is damaged, every
    ///     entry that can be read is copied to a new file, which takes its place, and the damaged file is renamed.
    ///     Damaged entries are deleted.
    ///   - progress: Called with the number of entries that were checked.
    /// - Throws: A write error, see ``CacheError``.
    public func verify(
        repairing: Bool = false, progress: ProgressHandler? = nil
    ) throws(CacheError) -> VerificationReport {
        try throwing("be verified") { () throws(StoreError) in
            let total = progress == nil ? 0 : Int(try store.caches().reduce(0) { $0 + $1.count })
            let report = try store.verify(repairing: repairing) { count in
                progress?(CacheProgress(completed: count, total: max(count, total)))
            }
            return VerificationReport(
                problems: report.problems, entries: report.entryCount,
                repaired: repairing && report.salvage == nil ? report.damagedCount : 0, lost: report.salvage?.lost ?? 0,
                setAside: report.salvage.map { URL(fileURLWithPath: $0.path) })
        }
    }

    /// Checks every page, row and value file of the store, and reports the problems.
    public func verify(
        repairing: Bool = false, progress: ProgressHandler? = nil
    ) async throws(CacheError) -> VerificationReport {
        try await offload { () throws(CacheError) in try self.verify(repairing: repairing, progress: progress) }
    }

    /// Writes a compact copy of the store, from which other stores can begin, see ``init(url:priming:configuration:)``.
    ///
    /// The copy has no log, no retired rows, and nothing that tells how this store was used. It is complete when it gets its name, and
    /// its value files are in a folder next to it. Everyone may read them. `larder bake` does the same.
    ///
    /// - Parameter url: A file that is not there yet; missing folders are created.
    /// - Throws: `.storageUnavailable` if the file is there or cannot be written, or the store is in memory. `.busy` if something is
    ///   written to the store again and again in the meantime. Else a read error, see ``CacheError``.
    public func bake(to url: URL) throws(CacheError) {
        let path = try StorePath.path(of: url)
        try throwing("be copied to \(path)") { () throws(StoreError) in try store.bake(to: path) }
    }

    /// Writes a compact copy of the store, from which other stores can begin.
    public func bake(to url: URL) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.bake(to: url) }
    }

    /// Deletes the store in a file with all that belongs to it: log, value files, lock file, reserve, damaged copies.
    ///
    /// If there is no store, nothing happens. Close suspended managers, and managers that only read, before: they can be without
    /// a lock that this call would notice.
    ///
    /// - Parameter url: The file of the store.
    /// - Throws: `.busy` while any manager of any process has it open, `.foreignFile` if the file is no store,
    ///   `.invalidName`, `.invalidConfiguration`, `.storageUnavailable`.
    public static func deleteStore(at url: URL) throws(CacheError) {
        let path = try StorePath.path(of: url)
        do throws(StoreError) { try Store.delete(path) } catch { throw CacheError(error, "be deleted at \(path)") }
    }

    /// Deletes the store `<caches directory>/<name>.sqlite` with all that belongs to it.
    ///
    /// If there is no store, nothing happens.
    ///
    /// - Parameter name: The name of the store.
    /// - Throws: `.busy` while any manager of any process has the store open, `.foreignFile` if the file is no store,
    ///   `.invalidName`, `.invalidConfiguration`, `.storageUnavailable`.
    public static func deleteStore(named name: String) throws(CacheError) {
        try deleteStore(at: URL(fileURLWithPath: StorePath.path(named: name)))
    }

    /// Deletes the store in a file with all that belongs to it; throws `.busy` while any manager of any process has it open.
    ///
    /// Close suspended managers, and managers that only read, before.
    public static func deleteStore(at url: URL) async throws(CacheError) {
        try await offload { () throws(CacheError) in try deleteStore(at: url) }
    }

    /// Deletes the store `<caches directory>/<name>.sqlite` with all that belongs to it.
    ///
    /// - Parameter name: The name of the store.
    /// - Throws: `.busy` while any manager of any process has the store open, `.foreignFile` if the file is no store,
    ///   `.invalidName`, `.invalidConfiguration`, `.storageUnavailable`.
    public static func deleteStore(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try deleteStore(named: name) }
    }

    /// Removes the entries of all caches that have a tag, whether they have expired or not.
    ///
    /// Up to 10,000 entries are removed in one step. More are removed in slices, between which other writes run: a reader can see
    /// the removal half done, and after a crash the rest is left.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of removed entries.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeAll(tagged tag: String) throws(CacheError) -> Int {
        try throwing("remove entries") { () throws(StoreError) in
            try store.removeAll(tagged: CBORText.normalized(tag))
        }
    }

    /// Releases memory now: at `.warning` at least half of what each cache keeps in memory, at `.critical` all.
    ///
    /// The least recently used entries leave memory first, and all stay on disk. Caches whose
    /// ``CacheOptions/clearsOnMemoryPressure`` is false keep their entries in memory. If the system reports memory
    /// pressure, this happens automatically.
    ///
    /// - Parameter level: The level of the pressure.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        for cache in allOpenCaches { cache.handleMemoryPressure(level) }
    }
}

extension CacheManager {
    /// Removes the entries of all caches that have a tag, whether they have expired or not, and returns their number.
    ///
    /// Up to 10,000 are removed in one step, and more in slices.
    @discardableResult
    public func removeAll(tagged tag: String) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll(tagged: tag) }
    }
}

/// Information about one cache of a store.
public struct CacheInfo: Hashable, Sendable {
    /// The name of the cache.
    public let name: String

    /// The version under which the entries were written.
    public let version: CacheVersion

    /// The number of entries that have not expired, by the maximum age that was declared last.
    public let count: Int

    /// The number of bytes of the payloads and extended data of the entries.
    public let sizeOnDisk: Int64

    /// The time at which the cache was opened last.
    public let openedAt: Date

    /// The limits on disk that hold for the cache, in whatever program.
    public let limits: DiskLimits

    /// What all programs have counted in the last ninety days.
    ///
    /// A program writes its counters hourly with other commits, and when it closes the store.
    public let activity: CacheStatistics

    /// The program that has opened the store last, for this cache or another one; nil if that is not known.
    public let lastOpener: StoreOpener?

    /// A program that has opened a store.
    public struct StoreOpener: Hashable, Sendable {
        /// The name of the program.
        public let program: String

        /// The release of Larder that the program had.
        public let libraryVersion: String

        /// The time at which the program opened the store.
        public let openedAt: Date
    }
}

/// The progress of a long operation.
public struct CacheProgress: Hashable, Sendable {
    /// The number of items that are done.
    public let completed: Int

    /// The number of all items.
    public let total: Int

    package init(completed: Int, total: Int) {
        self.completed = completed
        self.total = total
    }
}

/// A closure that receives the progress of a long operation.
///
/// No lock is held during the call, so the closure may use the cache.
public typealias ProgressHandler = @Sendable (CacheProgress) -> Void
