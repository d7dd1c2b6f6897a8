import Foundation
import Larder
import LarderTestSupport
import Testing

/// Copies in memory while another store commits and this one writes.
struct ForeignCommitTests {
    @Test func `writes that change nothing hide no commit of another store`() throws {
        let place = try TemporaryStore(of: #fileID)
        func cache() throws -> Cache<Int, Int> {
            let manager = try place.manager { $0.busyTimeout = .seconds(120) }
            return try manager.cache(
                named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(clearsOnMemoryPressure: false))
        }
        let (reading, writing) = (try cache(), try cache())
        let (isDone, begun) = (Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let remover = SideThread<Void> {
            while !isDone.value {
                try reading.remove(-1)
                begun.increment()
            }
        }
        try Waiting.until { begun.value > 0 || remover.result != nil }
        var stale = 0
        for number in 1...500 {
            try writing.setValue(number, forKey: 1)
            if try reading.value(forKey: 1) != number { stale += 1 }
        }
        isDone.change { $0 = true }
        try remover.value()
        #expect(stale == 0)
    }
}
