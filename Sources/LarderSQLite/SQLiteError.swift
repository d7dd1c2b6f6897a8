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

    /// SQLite's own words.
    package let message: String

    /// The statement that failed, if it was one.
    package let sql: String?

    /// The system's `errno` behind it, 0 if there was none.
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
        package static let permission = Code(rawValue: SQLITE_PERM)
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

        /// Constraints of our own tables: NOT NULL, the primary key, UNIQUE, the rowid and the types of a STRICT table.
        ///
        /// No statement of ours breaks one, unless a row or an index is damaged.
        fileprivate static let constraintsOfOurs: Set<Code> = Set(
            [SQLITE_CONSTRAINT | (5 << 8), 6 << 8, 8 << 8, 10 << 8, 12 << 8].map {
                Code(rawValue: SQLITE_CONSTRAINT | $0)
            })

        /// The device failed a read; SQLite names it for a corrupt file system.
        package static let deviceFailure = Code(rawValue: SQLITE_IOERR | (33 << 8))

        package static func ~= (pattern: Code, value: Code) -> Bool {
            pattern == value || pattern == value.primary
        }
    }

    /// Whether the file's content is damaged, as opposed to out of reach.
    package var isCorruption: Bool {
        switch code {
        case .corrupt, .notADatabase: true
        // Of the formats of a schema that a release of SQLite may not know, ours is the oldest that is still written.
        case .error: isOfOtherTables || message == "unsupported file format"
        default: Code.constraintsOfOurs.contains(code)
        }
    }

    /// Whether a statement does not fit the tables: ours are fixed, so the tables are not ours any more.
    package var isOfOtherTables: Bool {
        code == .error
            && (message.hasPrefix("no such table") || message.hasPrefix("no such column")
                || message.hasPrefix("no such index")
                || message.contains(" has no column named "))
    }
}

extension SQLiteError {
    /// Whether the volume has no room left, or its user may have no more of it.
    package var isAboutRoom: Bool { .full ~= code || systemCode == ENOSPC || systemCode == EDQUOT }

    /// Our own: there is no room for what is about to be committed.
    package static let noRoom = SQLiteError(code: .full, message: "the main file cannot grow")

    /// Our own: the connections were closed.
    package static let closed = SQLiteError(code: Code(rawValue: -1), message: "the connections are closed")

    /// Another file, or none, stands where the one we have open stood.
    package static let moved = SQLiteError(code: .moved, message: "the file was moved or deleted")
}

extension SQLiteError {
    /// What the handle says of the call that just returned `code`.
    ///
    /// Inside a statement SQLite calls a read that the device failed (EIO, ENXIO or ERANGE) corruption. What the files
    /// themselves remember tells the two apart: a disk that is out of reach for a moment must cost nobody the store.
    init(of handle: OpaquePointer, _ code: Int32, sql: String?) {
        let extended = sqlite3_extended_errcode(handle)
        var reported = Code(rawValue: extended & 0xff == code & 0xff ? extended : code)
        var message = String(cString: sqlite3_errmsg(handle))
        // SQLite notes it with these two alone, and never forgets it: with any other it is that of an older failure.
        let hasSystemCode = reported.primary == .inputOutput || reported.primary == .cannotOpen
        var systemCode = hasSystemCode ? sqlite3_system_errno(handle) : 0
        switch reported.primary {
        case .corrupt, .notADatabase, .inputOutput:
            // Taken, even where it is not needed: left there, it would excuse real damage that is found later.
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
