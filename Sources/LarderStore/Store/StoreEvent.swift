/// A report of a store about its files.
package enum StoreEvent: Sendable {
    /// A damaged file, or one of a later release, was replaced.
    case replaced(SalvageReport)
    /// A cache was opened under another version or codec than that under which its entries were written.
    case purged(cache: String, version: String, newVersion: String)
    /// A cache was opened under another version, to which its entries were carried over.
    case migrated(MigrationResult)
    /// A handle was found to be superseded; reported once for each.
    case superseded(cache: String, version: String)
    /// Rows were removed by age, limit or tag.
    case removed([RemovedRow], cache: String)
    /// The limits of a cache, or of the store, cannot be held, because the rows that are left are pinned.
    case limitUnmet(cache: String?)
    /// Upkeep has failed, and is tried again.
    case upkeepFailed(StoreError)
    /// The log could not be copied into the main file, and grows; reported once until it can.
    case logNotCopied(StoreError)
    /// The log was copied again.
    case logCopied
    /// An entry that does not fit its checksum was found, and is deleted.
    case damagedEntry(cache: String, key: StoredKey)
}

/// The result of a salvage.
package struct SalvageReport: Hashable, Sendable {
    /// The entries that were copied to the new file.
    package var kept = 0
    /// The entries that were found and could not be read.
    package var lost = 0
    /// The path of the old file.
    package var path = ""
}
