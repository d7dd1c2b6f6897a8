internal import LarderCSQLite

/// The first bytes of a file, enough to identify its application.
///
/// They are read through SQLite's own file handle: opening and closing a database by path would drop every lock that
/// the process holds on it.
package struct FileHead: Sendable, Equatable {
    /// The file's length in bytes; SQLite says 0 of a file of one byte.
    package let size: Int64
    /// A Boolean value that indicates whether it begins like an SQLite database.
    package let hasSQLiteHeader: Bool
    /// The application id at its offset, whatever precedes it.
    package let applicationID: Int32
    /// A Boolean value that indicates whether the header declares a write-ahead log.
    package let isInLogMode: Bool
    /// A Boolean value that indicates whether the header declares a journal that SQLite has.
    package let hasKnownJournal: Bool
    /// A Boolean value that indicates whether the main file contains no table, index, view or trigger.
    package let hasNoTables: Bool

    /// Reads the head of the file at `path`, which must exist.
    ///
    /// Takes no lock, and creates and changes no file.
    package init(path: String) throws(SQLiteError) {
        let connection = try Connection.open(.immutableFile(path))
        var bytes = [UInt8](repeating: 0, count: 108)
        let count = Int32(bytes.count)
        size = bytes.withUnsafeMutableBytes { larder_read_head(connection.handle, $0.baseAddress, count) }
        guard size >= 0 else { throw SQLiteError(code: .inputOutput, message: "the file's first bytes cannot be read") }
        hasSQLiteHeader = size >= 100 && bytes.starts(with: Array("SQLite format 3\0".utf8))
        applicationID = Int32(bitPattern: bytes[68..<72].reduce(0) { $0 << 8 | UInt32($1) })
        isInLogMode = bytes[18] == 2 && bytes[19] == 2
        hasKnownJournal = isInLogMode || bytes[18] == 1 && bytes[19] == 1
        // Page 1 is the root of the schema's table: a leaf (13) with no cells has no rows.
        hasNoTables = bytes[100] == 13 && bytes[103] == 0 && bytes[104] == 0
    }
}

extension Connection {
    /// Writes into a damaged header that the file has a write-ahead log, which no other byte depends on.
    ///
    /// SQLite refuses to write, or to read at all, a file whose header declares a journal of a later release.
    package static func declareLog(inFileAt path: String) throws(SQLiteError) {
        let connection = try open(.file(path))
        let code = larder_write_at(larder_main_file(connection.handle), [2, 2] as [UInt8], 2, 18)
        if code != 0 { throw SQLiteError(code: .inputOutput, message: "the file's first bytes cannot be written") }
    }
}

/// File systems of other machines, with which this one shares no memory.
package enum NetworkDisk {
    /// Returns whether a folder is on one.
    package static func holds(_ folder: String) -> Bool { has(larder_file_system(folder)) }

    /// Returns whether Linux has a number for NFS, SMB, CIFS, AFS, Coda, Ceph or 9P.
    ///
    /// FUSE has one number for local and for remote disks, so SSHFS is not among them.
    package static func has(_ kind: Int64) -> Bool {
        [0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x5346_414F, 0x7375_7245, 0x00C3_6400, 0x0102_1997].contains(kind)
    }
}
