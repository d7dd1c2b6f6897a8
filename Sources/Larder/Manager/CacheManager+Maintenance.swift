public import Foundation

/// What `maintain()` has done.
public struct MaintenanceReport: Hashable, Sendable {
    /// Entries that were over.
    public let expired: Int

    /// Entries that were over a limit.
    public let trimmed: Int

    /// Rows of retired generations: of purges and clears.
    public let reclaimed: Int

    /// Files that no row named.
    public let orphans: Int

    /// Bytes that the database's file gave back.
    public let freedBytes: Int64
}

/// What `verify(repairing:progress:)` has found.
public struct VerificationReport: Hashable, Sendable {
    /// Whether nothing is wrong.
    public var isHealthy: Bool { problems.isEmpty }

    /// What is wrong, a sentence a problem.
    public let problems: [String]

    /// How many entries were looked at.
    public let entries: Int

    /// How many damaged ones were deleted.
    public let repaired: Int

    /// The number of entries that could not be carried over from a damaged database.
    ///
    /// It counts those of which a trace is left: a row that does not fit its checksum, or an index that names one. It is 0
    /// where the database was not replaced.
    public let lost: Int

    /// The damaged database, which was set aside; nil if it was not replaced.
    public let setAside: URL?
}

extension CacheManager {
    /// Looks after the store: removes what is over, over a limit, retired or orphaned, and gives space back.
    ///
    /// It works in slices of some milliseconds, so that others get their turn, and returns when nothing of that kind is
    /// left that was there at its start, whoever removed it. It covers sub-caches that nobody has open. By itself it
    /// happens `maintenanceInterval` after a write.
    @discardableResult
    public func maintain() throws(CacheError) -> MaintenanceReport {
        let store = try writableStore()
        try store.inside.refuseCurrent("maintain the store")
        let counts = try store.maintain()
        return MaintenanceReport(
            expired: counts.expired, trimmed: counts.trimmed, reclaimed: counts.reclaimed, orphans: counts.orphans,
            freedBytes: counts.freedBytes)
    }

    /// Looks after the store without blocking the caller's executor; see the synchronous form.
    @discardableResult
    public func maintain() async throws(CacheError) -> MaintenanceReport {
        try await offload { () throws(CacheError) in try self.maintain() }
    }

    /// Reads the whole store, and says what is wrong with it.
    ///
    /// Every page of the database is checked, every row, and every file with its checksum. Values are not decoded.
    ///
    /// - Parameters:
    ///   - repairing: A Boolean value that indicates whether damage is repaired. If the database is damaged, every entry
    ///     that can be read goes into a new one, which takes its place, whatever `recovery` says; the original is set aside.
    ///     Otherwise damaged entries are deleted.
    ///   - progress: Told how many entries were looked at.
    public func verify(
        repairing: Bool = false, progress: ProgressHandler? = nil
    ) throws(CacheError) -> VerificationReport {
        let store = repairing ? try writableStore() : try store()
        if repairing { try store.inside.refuseCurrent("repair the store") }
        let findings = try store.verify(isRepairing: repairing) { progress?($0) }
        return VerificationReport(
            problems: findings.problems, entries: findings.rows, repaired: findings.repaired,
            lost: findings.salvaged?.lost ?? 0,
            setAside: findings.salvaged.map { URL(fileURLWithPath: $0.path) })
    }

    /// Reads the whole store without blocking the caller's executor; see the synchronous form.
    public func verify(
        repairing: Bool = false, progress: ProgressHandler? = nil
    ) async throws(CacheError) -> VerificationReport {
        try await offload { () throws(CacheError) in try self.verify(repairing: repairing, progress: progress) }
    }

    /// Gives memory back now: `.warning` lets the less recently used half of every sub-cache leave memory, by count and
    /// by cost, `.critical` all.
    ///
    /// What leaves memory stays on disk. Sub-caches whose ``CacheOptions/clearsOnMemoryPressure`` is false keep what they
    /// have. Where the system tells of its pressure, this happens by itself.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        guard let ledgers = liveLedgers else { return }
        for ledger in ledgers { ledger.front?.relieve(level) }
    }
}
