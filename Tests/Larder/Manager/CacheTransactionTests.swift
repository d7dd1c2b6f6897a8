import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheTransactionTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func manager(_ isInMemory: Bool) throws -> CacheManager {
        try isInMemory ? .inMemory(configuration: place.clock.configuration) : place.manager()
    }

    private func counts(_ manager: CacheManager, _ name: String = "counts") throws -> Cache<String, Int> {
        try manager.cache(named: name, version: "1", maxAge: .hours(1).sinceLastAccess)
    }

    private struct Stop: Error {}

    @Test func `what a transaction reads is used`() throws {
        let (place, manager) = try TemporaryStore.opened()
        let cache: Cache<Int, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .seconds(10).sinceLastAccess, options: CacheOptions().steady)
        for key in 1...2 { cache[key] = key }
        place.clock.set(place.clock.now + 9)
        #expect(try manager.transaction { try $0.value(forKey: 1, in: cache) } == 1)
        place.clock.set(place.clock.now + 9)
        #expect(cache[1] == 1 && cache[2] == nil)
    }

    @Test func `a transaction shows what it wrote, to itself alone, and is all or nothing`() throws {
        let manager = try manager(false)
        let (a, b) = (try counts(manager), try counts(manager, "b"))
        a["x"] = 1
        b["x"] = 1
        let before = a.statistics.writes
        try manager.transaction { transaction in
            #expect(try transaction.value(forKey: "x", in: a) == 1)
            try transaction.setValue(2, forKey: "x", in: a, extendedData: Data([1]), pinned: true)
            try transaction.setValue(3, forKey: "x", in: a)
            try transaction.removeValue(forKey: "x", in: b)
            #expect(try transaction.value(forKey: "x", in: a) == 3)
            #expect(try transaction.value(forKey: "x", in: b) == nil)
            #expect(a["x"] == 1 && b["x"] == 1)
            #expect(try a.entry(forKey: "x")?.value == 1)
        }
        #expect(a["x"] == 3 && b["x"] == nil)
        #expect(try a.metadata(forKey: "x")?.isPinned == true)
        #expect(a.statistics.writes == before + 2)
        #expect(throws: Stop.self) {
            try manager.transaction { transaction in
                try transaction.removeValue(forKey: "x", in: a)
                throw Stop()
            }
        }
        #expect(a["x"] == 3)
        try expectInvariants(a)
        try expectInvariants(b)
    }

    @Test(arguments: [false, true])
    func `from inside every plain write is refused, every plain read works`(isUpdate: Bool) throws {
        let manager = try manager(false)
        let cache = try counts(manager)
        for key in ["a", "b"] { cache[key] = 1 }
        #expect(cache["a"] == 1)
        func inside() throws {
            expectError(.reentrant) { try cache.setValue(2, forKey: "b") }
            expectError(.reentrant) { try cache.setValues(["b": 2]) }
            expectError(.reentrant) { try cache.remove("b") }
            expectError(.reentrant) { try cache.removeValue(forKey: "b") }
            expectError(.reentrant) { try cache.removeValues(forKeys: ["b"]) }
            expectError(.reentrant) { try cache.removeAll() }
            expectError(.reentrant) { try cache.removeAll { _ in true } }
            expectError(.reentrant) { try cache.removeExpired() }
            expectError(.reentrant) { try cache.trim(toCount: 0) }
            expectError(.reentrant) { try cache.setExtendedData(Data(), forKey: "b") }
            expectError(.reentrant) { try cache.update("b") { $0 = 2 } }
            expectError(.reentrant) { try manager.transaction { _ in } }
            expectError(.reentrant) { try manager.flush() }
            expectError(.reentrant) { try manager.removeAll() }
            expectError(.reentrant) { try manager.removeCache(named: "counts") }
            expectError(.reentrant) { try counts(manager, "new") }
            cache["b"] = 2
            #expect(cache["a"] == 1 && cache["b"] == 1)
            #expect(try cache.count == 2)
            #expect(try !cache.isEmpty && cache.sizeOnDisk == 2)
            #expect(try cache.snapshot() == ["a": 1, "b": 1])
            #expect(cache.map(\.key) == ["a", "b"])
            #expect(try cache.values(forKeys: ["a"]) == ["a": 1])
            #expect(try manager.cacheInfo().count == 1)
        }
        if isUpdate {
            try cache.update("a") { value in
                try inside()
                value = 5
            }
        } else {
            try manager.transaction { transaction in
                try inside()
                try transaction.setValue(5, forKey: "a", in: cache)
            }
        }
        #expect(cache["a"] == 5)
        cache["b"] = 7
        #expect(cache["b"] == 7)
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `a write on another thread waits for the end of a transaction`(isInMemory: Bool) throws {
        let manager = try manager(isInMemory)
        let cache = try counts(manager)
        let store = StoreProbe(manager)
        var writer: SideThread<Void>?
        try manager.transaction { transaction in
            writer = SideThread { cache["a"] = 2 }
            try Waiting.until { try store.waitingCount == 1 }
            try transaction.setValue(1, forKey: "a", in: cache)
        }
        try writer?.value()
        #expect(cache["a"] == 2)
        try expectInvariants(cache)
    }

    @Test func `a handle of another store is refused`() throws {
        let manager = try manager(false)
        let foreign = try counts(try CacheManager.inMemory())
        expectError(.invalidConfiguration) {
            try manager.transaction { try $0.setValue(1, forKey: "a", in: foreign) }
        }
        expectError(.invalidConfiguration) {
            try manager.transaction { _ = try $0.value(forKey: "a", in: foreign) }
        }
        #expect(foreign["a"] == nil)
    }

    @Test func `a removed value of an optional type is no value`() throws {
        let manager = try manager(true)
        let cache: Cache<Int, Int?> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try cache.setValue(.some(.none), forKey: 1)
        try cache.setValue(3, forKey: 2)
        try manager.transaction { transaction in
            #expect(try transaction.value(forKey: 1, in: cache) == .some(.none))
            try transaction.setValue(.some(.none), forKey: 2, in: cache)
            #expect(try transaction.value(forKey: 2, in: cache) == .some(.none))
            try transaction.removeValue(forKey: 1, in: cache)
            #expect(try transaction.value(forKey: 1, in: cache) == .none)
        }
        #expect(try cache.value(forKey: 2) == .some(.none))
        #expect(try cache.value(forKey: 1) == .none)
    }

    @Test func `an encoding that fails fails alone, and spoils the transaction only if it is let through`() throws {
        let manager = try manager(false)
        let cache: Cache<Double, Double> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
        try manager.transaction { transaction in
            try transaction.setValue(1, forKey: 1, in: cache)
            expectError(.encodingFailed) { try transaction.setValue(1, forKey: .nan, in: cache) }
        }
        #expect(cache[1] == 1)
        expectError(.encodingFailed) {
            try manager.transaction { transaction in
                try transaction.setValue(2, forKey: 1, in: cache)
                try transaction.setValue(1, forKey: .nan, in: cache)
            }
        }
        #expect(cache[1] == 1)
    }

    @Test(arguments: [false, true])
    func `no update of a hundred is lost`(isInMemory: Bool) async throws {
        let manager = try manager(isInMemory)
        let cache = try counts(manager)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    do {
                        if number % 10 == 0 {
                            try await manager.transaction { transaction in
                                let old = try transaction.value(forKey: "n", in: cache) ?? 0
                                try transaction.setValue(old + 1, forKey: "n", in: cache)
                            }
                        } else {
                            try await cache.update("n") { $0 = ($0 ?? 0) + 1 }
                        }
                        try await cache.setValue(number, forKey: "other \(number)")
                    } catch {
                        Issue.record(error)
                    }
                }
            }
        }
        #expect(cache["n"] == 100)
        #expect(try cache.count == 101)
        DispatchQueue.concurrentPerform(iterations: 100) { _ in
            do { try cache.update("n") { $0? += 1 } } catch { Issue.record(error) }
        }
        #expect(cache["n"] == 200)
        try expectInvariants(cache)
    }

    @Test func `an update that throws, or changes nothing, leaves everything beside the value as it was`() throws {
        let manager = try manager(false)
        let cache = try counts(manager)
        try cache.setValue(1, forKey: "a", maxAge: .hours(2), extendedData: Data([9]), pinned: true)
        #expect(throws: Stop.self) {
            try cache.update("a") { value in
                value = 7
                throw Stop()
            }
        }
        #expect(cache["a"] == 1)
        #expect(
            try cache.update("a") { value in
                value? += 1; return value
            } == 2)
        let entry = try #require(try cache.entry(forKey: "a"))
        #expect(entry.extendedData == Data([9]) && entry.metadata.isPinned && entry.value == 2)
        #expect(entry.metadata.expiresAt == entry.metadata.writtenAt + 7200)
        try cache.update("a") { $0 = nil }
        try cache.update("nothing") { value in
            #expect(value == nil)
        }
        #expect(try cache.count == 0)
        place.clock.advance(by: .seconds(7200))
        try expectInvariants(cache)
    }
}
