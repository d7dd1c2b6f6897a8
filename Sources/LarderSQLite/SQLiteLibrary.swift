internal import LarderCSQLite

/// The SQLite library of this process.
package enum SQLiteLibrary {
    /// The oldest release with all required features: STRICT tables and extended codes from the opening on.
    package static let oldest: Int32 = 3_037_000

    /// The version number, 3040001 for 3.40.1.
    package static var version: Int32 { sqlite3_libversion_number() }
}
