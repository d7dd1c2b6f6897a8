package import LarderSQLite

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension CacheError {
    /// Translates what SQLite reported while doing what `action` says ("cannot open …").
    package init(_ action: String, _ error: SQLiteError) {
        let (code, remedy) = error.meaning
        self.init(
            code, "\(action): \(remedy)", underlying: error,
            sqliteCode: error.code.rawValue > 0 ? error.code.rawValue : nil)
    }
}

extension SQLiteError {
    fileprivate var meaning: (CacheError.Code, String) {
        if isAboutRoom { return Self.full }
        if systemCode == EMFILE || systemCode == ENFILE {
            return (.storageUnavailable, "too many files are open; close some and try again")
        }
        if isCorruption, code.primary == .constraint { return (.corrupt, "the database is damaged") }
        switch code {
        case .busy, .locked, .lockingProtocol:
            return (.busy, "another connection holds the database; try again, or raise the busy timeout")
        case .corrupt, .notADatabase: return (.corrupt, "the database is damaged")
        case .cannotOpen where systemCode == EACCES || systemCode == EPERM:
            return (
                .storageUnavailable,
                "the permissions of the file, or of its log beside it, refuse us; check their owner and mode"
            )
        case .cannotOpen:
            return (.storageUnavailable, "the file cannot be opened; check that its folder exists and may be written")
        case .readOnly, .permission, .authorization:
            return (.storageUnavailable, "the file cannot be written; check its owner and mode, or open it read-only")
        case .inputOutput: return (.storageUnavailable, "the disk reports a failure; check the volume")
        case .tooBig: return (.tooLarge, "the value is larger than a row may be; lower the inline limit")
        case .outOfMemory: return (.storageUnavailable, "there is no memory left")
        case SQLiteError.closed.code: return (.closed, "it was closed")
        case .error where isOfOtherTables: return (.corrupt, "its tables are not as they should be")
        default: return (.storageUnavailable, "SQLite refuses (\(message))")
        }
    }

    private static let full: (CacheError.Code, String) = (
        .storageFull, "the volume is full; what is stored stays readable, and writing works again once there is room"
    )
}
