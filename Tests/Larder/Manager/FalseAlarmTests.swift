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

    private var setAside: [String] {
        get throws { try folder.names.filter { $0.contains("corrupt") } }
    }

    @Test func `damage that a look at every page does not find moves nothing`() throws {
        let manager = try CacheManager(url: url)
        for _ in 0..<3 { #expect(try rowCount(manager, alarms: 1) == 50) }
        #expect(try setAside == [])
    }

    @Test func `damage that the same call meets again is believed, and costs nothing that can be read`() throws {
        let manager = try CacheManager(url: url)
        #expect(try rowCount(manager, alarms: 2) == 50)
        #expect(try !setAside.isEmpty)
    }
}
