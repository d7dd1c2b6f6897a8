import Foundation
import Larder
import LarderTestSupport

/// Migrations of values in a process of their own.
extension CacheProgram {
    /// Migrates from version to version until it is killed, and prints each version that it has reached.
    ///
    /// - Parameter end: The number of conversions at which it kills itself; 0 for none.
    static func migrate(_ path: String, from version: Int, until end: Int) throws {
        let manager = try openManager(path)
        var version = version
        let calls = Counter()
        say("\(version)")
        while true {
            version += 1
            _ = try MigrationSample.open(manager, version) {
                calls.increment()
                if calls.value == end { kill(getpid(), SIGKILL) }
            }
            say("\(version)")
        }
    }

    /// Migrates on a disk that becomes full in the midst of it, and again when there is room.
    static func migrateOnFullDisk(_ folder: String) throws {
        let manager = try openManager(folder + "/store.sqlite")
        try MigrationSample.fill(manager, 1)
        let rest = URL(fileURLWithPath: folder + "/rest")
        let calls = Counter()
        say(
            "migrate",
            outcome {
                _ = try MigrationSample.open(manager, 2) {
                    calls.increment()
                    // The value that is converted next is written to a full disk.
                    if calls.value == 200 { do { try eat(rest) } catch { say("\(error)") } }
                }
            })
        let before = try MigrationSample.check(manager)
        say("version", before.version, "problems", before.problems.count)
        try FileManager.default.removeItem(at: rest)
        _ = try MigrationSample.open(manager, 2)
        let after = try MigrationSample.check(manager)
        say("version", after.version, "problems", after.problems.count)
        try manager.maintain()
        say("rows", try StoreProbe(manager).entryCount() == MigrationSample.count, try manager.verify().problems)
        try manager.close()
    }
}
