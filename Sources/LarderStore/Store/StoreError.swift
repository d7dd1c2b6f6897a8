internal import Foundation
internal import LarderSQLite

/// A failure of the store.
///
/// The typed side gives it the names of the cache and the key.
package struct StoreError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable {
        case storageUnavailable, storageFull, busy, corrupt, foreignFile, newerSchema, superseded, reentrant, closed
        case suspended
        case tooLarge, readOnly
        /// The keys of the cache are of another kind than those of the handle.
        case otherKeys
    }

    package let code: Code
    package let message: String
    package let sqliteCode: Int32?

    package init(_ code: Code, _ message: String, sqliteCode: Int32? = nil) {
        (self.code, self.message, self.sqliteCode) = (code, message, sqliteCode)
    }

    package var description: String { message }

    /// A Boolean value that indicates whether SQLite found no room, so that the ballast helps.
    var isFullDisk: Bool { code == .storageFull && sqliteCode != nil }

    /// A Boolean value that indicates whether it is SQLite that calls the disk full, and not the system.
    var saysFull: Bool { code == .storageFull && sqliteCode == SQLiteError.noRoom.code.rawValue }

    /// A Boolean value that indicates whether a full disk has kept a row from being written: a sync has not failed.
    var isSurelyUnwritten: Bool {
        code == .storageFull && [nil, SQLiteError.noRoom.code.rawValue].contains(sqliteCode)
    }

    /// A Boolean value that indicates whether a request was refused before it changed anything.
    var isRefusal: Bool { code == .superseded || code == .otherKeys || (code == .tooLarge && sqliteCode == nil) }

    /// A Boolean value that indicates whether another file, or none, is at the path.
    var isAboutMove: Bool { sqliteCode == SQLiteError.moved.code.rawValue }

    /// What the message says of a store whose schema an opening for writing would migrate.
    package static let earlierRelease = "was written by an earlier release"
    /// What the message says of a store that a killed process has left, and that only a writer can read.
    package static let missingIndex = "has a log without an index"
    static let full = StoreError(.storageFull, "The disk is full. Free some of it.")
    static let readOnly = StoreError(
        .readOnly, "The store was opened read-only, or its disk has become so. Open it for writing.")
    package static let closed = StoreError(.closed, "The store was closed. Open it again.")
    static let suspended = StoreError(.suspended, "The store is suspended. Resume it first.")
    static let superseded = StoreError(
        .superseded,
        "The cache was opened under another version, or removed. Open it under its newest version: to open an old one"
            + " again would purge the new entries.")
    static let reentrant = StoreError(
        .reentrant,
        "The closure of an update or a transaction has made this call. Use what the closure is given, or call after it."
    )
    static let fileDeleted = StoreError(
        .storageUnavailable, "The file of a large value was deleted before its row was written. Try again.")
    static let busy = StoreError(.busy, "Another process or a long transaction holds the store. Try again.")
}

extension StoreError {
    init(_ error: SQLiteError) {
        let (code, remedy): (Code, String) =
            switch error.code {
            case _ where error.isAboutRoom: (.storageFull, Self.full.message)
            case _ where error.isCorruption: (.corrupt, "The database is damaged.")
            case .busy, .locked: (.busy, Self.busy.message)
            case .moved:
                (.storageUnavailable, "The file was moved or deleted. Try again: the store opens its path again.")
            case .readOnly: (.readOnly, Self.readOnly.message)
            case SQLiteError.newerSchema.code:
                (.newerSchema, "A later release has changed the store while it was open. Update the program.")
            case .tooBig: (.tooLarge, "The entry is larger than SQLite allows. Store a reference to it instead.")
            default: (.storageUnavailable, "The database is out of reach. Check the disk and the permissions.")
            }
        self.init(code, "\(remedy) (SQLite: \(error.message))", sqliteCode: error.code.rawValue)
    }

    init(_ error: FileError) {
        let remedy =
            switch error.number {
            case _ where error.isAboutRoom: Self.full.message
            case _ where error.isAboutPermission:
                "The program may not do this. Check the permissions of the file and its folder."
            case ENOTDIR: "A part of the path is a file and no folder. Check the path."
            case ENOENT, ELOOP: "A folder of the path is missing, and cannot be created. Check the path."
            default: "The disk is out of reach. Check the path and the disk."
            }
        self.init(error.isAboutRoom ? .storageFull : .storageUnavailable, "\(remedy) (\(error))")
    }

    /// The failure of any call inside the store.
    package init(any error: any Error) {
        switch error {
        case let error as StoreError: self = error
        case let error as SQLiteError: self.init(error)
        case let error as FileError: self.init(error)
        default: self.init(.storageUnavailable, "\(error)")
        }
    }

    /// An entry that is larger than a whole size limit.
    static func exceeds(_ limit: Int64, of owner: String, size: Int64) -> StoreError {
        StoreError(
            .tooLarge, "The entry has \(size) bytes, and the size limit of \(owner) is \(limit) bytes. Raise the limit."
        )
    }

    /// Runs `body`, and throws its failure as one of the store.
    static func translating<R: ~Copyable>(_ body: () throws -> R) throws(StoreError) -> R {
        do { return try body() } catch { throw StoreError(any: error) }
    }
}

/// A report of a store about its files.
package enum StoreEvent: Sendable {
    /// A damaged file, or one of a later release, was replaced.
    case replaced(SalvageReport)
    /// A missing file was made as a copy of another one.
    case primed(String)
    /// A missing file was made empty, because the other one could not be copied.
    case notPrimed(String, StoreError)
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
    /// The system gives no look at the memory that tells of commits: each read asks the file for them.
    case unwatched
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
