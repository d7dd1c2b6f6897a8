import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

/// What one call costs, counted and not timed.
///
/// A number that rises is a defect; one that falls is written down here. Other compilers and versions of SQLite have other numbers.
struct CostTests {
    #if compiler(>=6.3) && compiler(<6.4) && os(Linux) && arch(x86_64)
    static let isSupported = !ChildProcess.isSanitized && SQLiteLibrary.version / 1000 == 3040
    #else
    static let isSupported = false
    #endif

    #if DEBUG
    private let table = """
                            locks  allocations  system calls  statements  pages written
        set                     5           18             7           4              2
        replace                 5           19             5           4              1
        hit                     1            0             0           0              0
        miss                    3            2             0           1              0
        get from the disk       3            7             0           1              0
        load                   18           69             7           5              2
        remove                  5           21             7           5              2
        set and evict          13           70             7           5              2
        set 100 KB              8           30            16           4              3
        get 100 KB              4           12             4           1              0
        remove 100 KB           6           30            12           5              3
        """
    #else
    // Locks are counted in debug builds alone.
    private let table = """
                            locks  allocations  system calls  statements  pages written
        set                     0           14             7           4              2
        replace                 0           15             5           4              1
        hit                     0            0             0           0              0
        miss                    0            2             0           1              0
        get from the disk       0            7             0           1              0
        load                    0           45             7           5              2
        remove                  0           18             7           5              2
        set and evict           0           30             7           5              2
        set 100 KB              0           21            16           4              3
        get 100 KB              0            7             4           1              0
        remove 100 KB           0           24            12           5              3
        """
    #endif

    @Test(.enabled(if: isSupported, "the numbers are those of Swift 6.3 and SQLite 3.40 on Linux"))
    func `each call takes so many locks, allocations, system calls, statements and pages, and no more`() throws {
        let folder = try TemporaryFolder()
        let lines = try ChildProcess("larder-test-costs", [folder.url.path]).finish().lines
        #expect(lines.joined(separator: "\n") == table)
    }
}
