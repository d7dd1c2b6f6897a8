public import Foundation
internal import LarderStore

/// The result of `maintain()`.
public struct MaintenanceReport: Hashable, Sendable {
    /// The entries that had expired.
    public let expired: Int

    /// The entries that were over a limit.
    public let trimmed: Int

    /// The rows of purged and cleared caches.
    public let reclaimed: Int

    /// The files that no row named.
    public let orphans: Int

    /// The bytes that the file of the database gave back.
    public let freedBytes: Int64
}

/// The result of `verify(repairing:progress:)`.
public struct VerificationReport: Hashable, Sendable {
    /// A Boolean value that indicates whether nothing is wrong.
    public var isHealthy: Bool { problems.isEmpty }

    /// What is wrong, a sentence for each problem.
    public let problems: [String]

    /// The number of entries that were looked at.
    public let entries: Int

    /// The number of damaged entries that were deleted.
    public let repaired: Int

    /// The number of entries that could not be carried over from a damaged database; 0 if it was not replaced.
    public let lost: Int

    /// The damaged database, which was set aside; nil if it was not replaced.
    public let setAside: URL?
}

extension CacheManager {
    /// Removes what has expired, is over a limit, retired or orphaned, and gives space back.
    ///
    /// It works in short transactions, so other writes have their turn, and returns when nothing of that kind is left that
    /// was there at its start. It covers caches that nobody has open. By itself it happens when something is due.
    ///
    /// - Throws: `.readOnly`, `.closed`, `.busy`, `.reentrant`.
    @discardableResult
    public func maintain() throws(CacheError) -> MaintenanceReport {
        let report = try throwing("be maintained") { () throws(StoreError) in try store.maintain() }
        return MaintenanceReport(
            expired: report.expired, trimmed: report.trimmed, reclaimed: report.reclaimed, orphans: report.orphans,
            freedBytes: report.freedBytes)
    }

    /// Does all upkeep, for a task; see the synchronous form.
    @discardableResult
    public func maintain() async throws(CacheError) -> MaintenanceReport {
        try await offload { () throws(CacheError) in try self.maintain() }
    }

    /// Reads the whole store, and reports what is wrong with it.
    ///
    /// Every page of the database is checked, every row, and every file with its checksum. Values are not decoded.
    ///
    /// - Parameters:
    ///   - repairing: A Boolean value that indicates whether damage is repaired. If the database is damaged, every entry that
    ///     can be read goes into a new one, which takes its place; the original is set aside. Damaged entries are deleted.
    ///   - progress: Called with the number of entries that were looked at.
    /// - Throws: `.readOnly`, `.closed`, `.busy`, `.reentrant`, `.storageUnavailable`, `.storageFull`.
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

    /// Reads the whole store, for a task; see the synchronous form.
    public func verify(
        repairing: Bool = false, progress: ProgressHandler? = nil
    ) async throws(CacheError) -> VerificationReport {
        try await offload { () throws(CacheError) in try self.verify(repairing: repairing, progress: progress) }
    }

    /// Removes the entries of all caches that have a tag, in one step.
    ///
    /// - Parameter tag: The tag.
    /// - Returns: The number of removed entries.
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll(tagged tag: String) throws(CacheError) -> Int {
        try throwing("remove entries") { () throws(StoreError) in
            try store.removeAll(tagged: CBORText.normalized(tag))
        }
    }

    /// Gives memory back now: `.warning` removes the less recently used half of every cache from memory, `.critical` all.
    ///
    /// What leaves memory stays on disk. Caches whose ``CacheOptions/clearsOnMemoryPressure`` is false keep what they have.
    /// If the system reports its memory pressure, this happens by itself.
    ///
    /// - Parameter level: How much is given back.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        for cache in allOpenCaches { cache.handleMemoryPressure(level) }
    }
}
