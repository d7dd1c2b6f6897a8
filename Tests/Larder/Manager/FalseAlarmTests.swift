import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Synchronization
import Testing

/// Damage that is reported and is not there.
struct FalseAlarmTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws {
        folder = try TemporaryFolder()
        try CacheManager.makeStore(at: url, rows: 50)
    }

    /// Reads the number of rows, and reports damage the first so many times.
    private func rowCount(_ manager: CacheManager, alarms: Int) throws -> Int {
        let left = Mutex(alarms)
        return try manager.store().read { (connection) throws(SQLiteError) in
            let isAlarm = left.withLock { left in
                left -= 1
                return left >= 0
            }
            if isAlarm { throw SQLiteError(code: .corrupt, message: "database disk image is malformed") }
            return try connection.rowCount()
        }
    }

    @Test func `damage that the same call meets again is believed, and costs nothing that can be read`() throws {
        let manager = try CacheManager(url: url)
        // The call itself may fail.
        do { _ = try rowCount(manager, alarms: 2) } catch {}
        #expect(try rowCount(manager, alarms: 0) == 50)
        #expect(try folder.names.contains { $0.contains("corrupt") })
    }
}
