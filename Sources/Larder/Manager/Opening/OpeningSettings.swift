internal import LarderSQLite

/// What the opener of a store decides for everybody who shares it.
package struct OpeningSettings: Sendable {
    package var access: CacheManager.Access = .readWrite
    package var durability: CacheManager.Durability = .processCrash
    package var recovery: CacheManager.Recovery = .recreate
    package var newerSchema: CacheManager.NewerSchema = .fail
    package var busyMilliseconds: Int32 = 5000

    /// SQLite's file system layer, other than the standard one; tests put faults there.
    package var vfs: String?

    /// Which release of SQLite this is; tests say an old one.
    package var libraryVersion = SQLiteLibrary.version

    func options(_ role: Connection.Role) -> Connection.Options {
        Connection.Options(
            role: role, synchronous: durability == .powerLoss ? .full : .normal,
            // A checkpoint that has to wait is tried again later.
            busyMilliseconds: role == .guardian ? min(busyMilliseconds, 100) : busyMilliseconds)
    }
}
