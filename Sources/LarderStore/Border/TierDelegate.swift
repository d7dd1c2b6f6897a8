package import LarderSQLite

/// The memory tier of a cache, as the store calls it.
package protocol TierDelegate: AnyObject, Sendable {
    /// Called under the writer's lock after a commit that removed rows, before reads agree with it: until
    /// ``rowsWereRemoved(_:)``, whose keys are decoded outside the lock, no copy is served that was not compared with its row.
    ///
    /// It takes a leaf lock alone.
    func rowsAreRemoved()
    /// Called after the commit that removed rows, outside all locks but for that of a running body.
    func rowsWereRemoved(_ rows: [RemovedRow])
    /// Returns the accesses since the last call, the oldest first.
    ///
    /// It is called under the writer's lock, so it takes a leaf lock alone and calls nothing of the store.
    ///
    /// - Parameter now: The moment of later accesses that read no clock.
    func takeAccesses(at now: Int64) -> [Access]
    /// Called when it is attached and after the file was opened again, outside all locks but for that of a running body.
    ///
    /// - Parameter watch: The watch of the open file.
    func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool)
    /// Returns what the counters have gained since the last call, by their numbers.
    func takeActivity() -> [Int64: Int64]
    /// Returns the ids of the rows that memory has used last, the least recent first; nil if they are not to be kept.
    ///
    /// It is called under the writer's lock, and takes a leaf lock alone.
    func takeRecentIDs() -> [Int64]?
    /// Called under the writer's lock for what is written or removed, in the transaction or after its commit: loads that run are not to store
    /// their results.
    ///
    /// It takes a leaf lock alone.
    func overtakeLoads(_ loads: Overtaken)
}

extension TierDelegate {
    package func takeRecentIDs() -> [Int64]? { nil }
}

/// A row that the store removed by age, limit or tag.
package struct RemovedRow: Sendable {
    package enum Cause: Hashable, Sendable {
        case expired, removed, damaged
        /// With a tag that was removed.
        case tagged
        /// By a closure of the program that evicts.
        case decided
        /// By the typed side, because it does not decode.
        case undecodable
        case evicted(by: Shortage)
    }

    /// What there was too little of for a row to stay.
    package enum Shortage: Sendable { case count, size, space }

    package let key: StoredKey
    package let id: Int64
    package let revision: Int64
    package let cause: Cause
}
