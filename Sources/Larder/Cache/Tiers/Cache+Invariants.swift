internal import Synchronization

// MARK: - Inspection

extension Cache {
    /// How many passes over memory its table knows of: none, once each has ended or was dropped.
    package var memoryWalkCount: Int { core.front.withLock { $0.memory.table.walks.count } }

    /// Whether a timer waits for the next entry in memory that expires.
    package var isMemoryExpiryArmed: Bool { core.expiry.isArmed }
}
