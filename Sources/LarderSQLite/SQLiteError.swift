internal import LarderCSQLite

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// A failure as SQLite reported it, captured at the failing call.
@usableFromInline
package struct SQLiteError: Error, Sendable {
    /// The extended result code.
    package let code: Code

    /// SQLite's own message.
    package let message: String

    /// The statement that failed, if there was one.
    package let sql: String?

    /// The system's `errno` that caused it, 0 if there was none.
    package let systemCode: Int32

    package init(code: Code, message: String, sql: String? = nil, systemCode: Int32 = 0) {
        self.code = code
        self.message = message
        self.sql = sql
        self.systemCode = systemCode
    }
}

extension SQLiteError {
    /// A result code; as a pattern, a primary code matches its extended ones.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: Int32

        package init(rawValue: Int32) {
            self.rawValue = rawValue
        }

        /// The code without its extension.
        package var primary: Code { Code(rawValue: rawValue & 0xff) }

        package static let error = Code(rawValue: SQLITE_ERROR)
        package static let busy = Code(rawValue: SQLITE_BUSY)
        package static let locked = Code(rawValue: SQLITE_LOCKED)
        package static let outOfMemory = Code(rawValue: SQLITE_NOMEM)
        package static let readOnly = Code(rawValue: SQLITE_READONLY)
        package static let inputOutput = Code(rawValue: SQLITE_IOERR)
        package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
        package static let full = Code(rawValue: SQLITE_FULL)
        package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
        package static let tooBig = Code(rawValue: SQLITE_TOOBIG)
        package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
        package static let misuse = Code(rawValue: SQLITE_MISUSE)
        package static let notADatabase = Code(rawValue: SQLITE_NOTADB)

        /// The file was moved or deleted under the connection.
        package static let moved = Code(rawValue: SQLITE_READONLY | (4 << 8))

        /// Constraints of the library's tables: NOT NULL, the primary key, UNIQUE, the rowid and the types of a
        /// STRICT table.
        ///
        /// No statement of the library violates one, unless a row or an index is damaged.
        fileprivate static let constraintsOfOurs: Set<Code> = Set(
            [SQLITE_CONSTRAINT | (5 << 8), 6 << 8, 8 << 8, 10 << 8, 12 << 8].map {
                Code(rawValue: SQLITE_CONSTRAINT | $0)
            })

        /// A read of the device failed; SQLite's name for the code is that of a corrupt file system.
        package static let deviceFailure = Code(rawValue: SQLITE_IOERR | (33 << 8))

        package static func ~= (pattern: Code, value: Code) -> Bool {
            pattern == value || pattern == value.primary
        }
    }

    /// A Boolean value that indicates whether the file's content is damaged, as opposed to out of reach.
    package var isCorruption: Bool {
        switch code {
        case .corrupt, .notADatabase: true
        // Of the schema formats that a release of SQLite may not know, the library's is the oldest that is still
        // written.
        case .error: message == "unsupported file format" || isOfOtherTables
        default: Code.constraintsOfOurs.contains(code)
        }
    }

    /// A Boolean value that indicates whether a statement does not fit the tables, which then are not the library's.
    private var isOfOtherTables: Bool {
        code == .error
            && (message.hasPrefix("no such table") || message.hasPrefix("no such column")
                || message.hasPrefix("no such index")
                || message.contains(" has no column named "))
    }
}

extension SQLiteError {
    /// A Boolean value that indicates whether the disk is full, or the user's quota is used up.
    package var isAboutRoom: Bool { .full ~= code || systemCode == ENOSPC || systemCode == EDQUOT }

    /// The library's own error: there is no space for the pages that are about to be committed.
    package static let noRoom = SQLiteError(code: .full, message: "the main file cannot grow")

    /// The library's own error: a later release has migrated the open file.
    package static let newerSchema = SQLiteError(
        code: Code(rawValue: -2), message: "the schema is newer than the library")

    /// The library's own error: another file, or none, is in the place of the open one.
    package static let moved = SQLiteError(code: .moved, message: "the file was moved or deleted")
}

extension SQLiteError {
    /// Creates the error that the handle has for the call that just returned `code`.
    ///
    /// Inside a statement SQLite reports a read that the device failed (EIO, ENXIO or ERANGE) as corruption. The
    /// error codes that the files keep distinguish the two: a disk that is out of reach for a moment must not cost
    /// the store.
    init(of handle: OpaquePointer, _ code: Int32, sql: String?) {
        let extended = sqlite3_extended_errcode(handle)
        var reported = Code(rawValue: extended & 0xff == code & 0xff ? extended : code)
        var message = String(cString: sqlite3_errmsg(handle))
        // SQLite stores it with these two alone, and never resets it: with any other code it is that of an older
        // failure.
        let hasSystemCode = reported.primary == .inputOutput || reported.primary == .cannotOpen
        var systemCode = hasSystemCode ? sqlite3_system_errno(handle) : 0
        switch reported.primary {
        case .corrupt, .notADatabase, .inputOutput:
            // Taken even if it is not needed: left there, it would excuse real damage that is found later.
            let taken = [larder_take_main_errno(handle), larder_take_log_errno(handle)]
            guard reported.primary != .inputOutput else { break }
            guard let failure = taken.first(where: Self.deviceFailures.contains) else { break }
            reported = .deviceFailure
            message = "the device failed a read (errno \(failure))"
            systemCode = failure
        default: break
        }
        self.init(code: reported, message: message, sql: sql, systemCode: systemCode)
    }

    /// The failures of a read for which SQLite has the code `SQLITE_IOERR_CORRUPTFS`.
    private static let deviceFailures = [EIO, ENXIO, ERANGE]
}

extension SQLiteError: CustomStringConvertible {
    @usableFromInline package var description: String { sql.map { "\(message), in: \($0)" } ?? message }
}

/// A stored value of any type.
package enum RawValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])
}

/// The SQLite library of this process.
package enum SQLiteLibrary {
    /// The oldest release with all required features: STRICT tables and extended codes from the opening on.
    package static let oldest: Int32 = 3_037_000

    /// The version number, 3040001 for 3.40.1.
    package static var version: Int32 { sqlite3_libversion_number() }
}
