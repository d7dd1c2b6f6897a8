internal import LarderCSQLite

extension Connection {
    /// Returns whether SQLite could open the file only for reading, which it tries if it may not write.
    package func isReadOnly() -> Bool {
        sqlite3_db_readonly(handle, "main") != 0
    }

    /// Returns whether every page is undamaged, which takes reading them all.
    package mutating func isSound() throws(SQLiteError) -> Bool {
        try text("PRAGMA quick_check(1)") == "ok"
    }

    /// Returns whether there is a table, an index, a view or a trigger.
    package mutating func hasTables() throws(SQLiteError) -> Bool {
        try text("SELECT count(*) FROM sqlite_schema") != "0"
    }
}

/// The SQLite library of this process.
package enum SQLiteLibrary {
    /// The oldest release with all required features: STRICT tables and extended codes from the opening on.
    package static let oldest: Int32 = 3_037_000

    /// The version number, 3040001 for 3.40.1.
    package static var version: Int32 { sqlite3_libversion_number() }
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
