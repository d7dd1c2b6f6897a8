import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// How the database's file gives back what a clear has left.
struct ShrinkingTests {
    /// What is seen between two steps of maintenance, by somebody else who reads and writes there.
    private final class Visitor: Sendable {
        let pages = Told<Int>()
        private let manager: CacheManager
        private let cache: Cache<Int, Data>
        private let maintenance = Locked<SideThread<MaintenanceReport>?>(nil)
        private let next = Locked<SideThread<Void>?>(nil)

        init(_ manager: CacheManager, _ cache: Cache<Int, Data>) {
            (self.manager, self.cache) = (manager, cache)
        }

        /// Comes once the next step waits, and once more, between that and the one after it, until there is none.
        func visit() throws {
            let store = try manager.store()
            try manager.transaction { transaction in
                let maintenance = started()
                try Waiting.until { store.queue.waitingCount == 1 || maintenance.result != nil }
                pages.add(try store.read { (c) throws(SQLiteError) in try c.pageCount() })
                let number = pages.all.count
                #expect(try cache.value(forKey: number - 1) == Data([UInt8(truncatingIfNeeded: number - 1)]))
                try transaction.setValue(Data([UInt8(truncatingIfNeeded: number)]), forKey: number, in: cache)
                guard maintenance.result == nil else { return }
                // Before the one after it can.
                next.change { $0 = SideThread { try self.visit() } }
                try Waiting.until { store.queue.waitingCount == 2 }
            }
        }

        private func started() -> SideThread<MaintenanceReport> {
            let manager = manager
            return maintenance.change { maintenance in
                let started = maintenance ?? SideThread { try manager.maintain() }
                maintenance = started
                return started
            }
        }

        /// Waits until the last visit is over, and what was visited.
        func leave() throws {
            while let visit = next.change({ $0.take() }) { try visit.value() }
            try maintenance.value?.value()
        }
    }

    // case 92
    @Test func `after a clear the file shrinks by slices, and others read and write between any two of them`() throws {
        let (place, manager) = try StorePlace.opened()
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, inlineLimit: .max))
        try cache.setValues((0..<5000).lazy.map { ($0, Data(count: 4000)) })
        try cache.removeAll()
        cache[0] = Data([0])
        let store = try manager.writableStore()
        // The rows go in slices of their own.
        try store.reclaimer.finish(store)
        let full = try store.read { (c) throws(SQLiteError) in try c.pageCount() }
        #expect(full > 5000)
        let before = store.queue.transactions
        let visitor = Visitor(manager, cache)
        try visitor.visit()
        try visitor.leave()
        let sizes = [full] + visitor.pages.all
        // A slice, and a page that says what the pages of it were.
        #expect(zip(sizes, sizes.dropFirst()).allSatisfy { $0 - $1 <= 257 }, "\(sizes)")
        #expect(Set(sizes).count >= 20 && sizes.last ?? full < 100, "\(sizes)")
        #expect(store.queue.transactions - before >= 20)
        #expect(try cache.count == visitor.pages.all.count + 1)
        // While somebody wrote, the log could not be copied.
        try manager.maintain()
        #expect(try place.url.fileSize() < 200_000)
        #expect(try manager.verify().isHealthy)
        try expectInvariants(cache)
    }
}
