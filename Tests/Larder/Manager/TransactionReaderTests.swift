import Foundation
import Larder
import LarderTestSupport
import Testing

/// Readers beside writes of several keys in one step, with both tiers in use.
struct TransactionReaderTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ name: String = "a") throws -> Cache<Int, Int> {
        try manager.cache(named: name, version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    enum Writer: CaseIterable { case transaction, setValues }

    @Test(arguments: Writer.allCases)
    func `readers of several keys see all that was written in one step, or nothing of it`(writer: Writer) throws {
        let cache = try cache()
        let keys = 20...22
        try cache.setValues(keys.map { ($0, 0) })
        let isOver = Locked(false)
        let reader = SideThread {
            while !isOver.value {
                let found = try cache.values(forKeys: keys)
                #expect(Set(found.values).count == 1 && found.count == 3, "\(found)")
                if case .setValues = writer { cache.memory.removeAll() }
            }
        }
        for number in 1...1500 {
            switch writer {
            case .transaction:
                try manager.transaction { (step: borrowing CacheTransaction) in
                    for key in keys { try step.setValue(number, forKey: key, in: cache) }
                }
            case .setValues: try cache.setValues(keys.map { ($0, number) })
            }
        }
        isOver.change { $0 = true }
        try reader.value()
        try expectInvariants(cache)
    }

    @Test func `a transaction that fails leaves memory able to take in what reads find`() throws {
        let cache = try cache()
        cache[1] = 1
        struct Stop: Error {}
        var shell = try Intruder(place.url)
        try shell.execute("CREATE TRIGGER no BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'no'); END")
        #expect(throws: (any Error).self) {
            try manager.transaction { try $0.setValue(2, forKey: 1, in: cache) }
        }
        #expect(throws: (any Error).self) { try cache.setValues([1: 2]) }
        try shell.execute("DROP TRIGGER no")
        #expect(throws: Stop.self) {
            try manager.transaction { (step: borrowing CacheTransaction) in
                try step.setValue(2, forKey: 1, in: cache)
                throw Stop()
            }
        }
        #expect(cache[1] == 1)
        let hits = cache.statistics.memoryHits
        #expect(cache[1] == 1)
        #expect(cache.statistics.memoryHits == hits + 1)
    }
}
