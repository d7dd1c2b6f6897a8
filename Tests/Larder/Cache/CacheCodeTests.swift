import Foundation
import Larder
import LarderTestSupport
import Testing

/// Codes that a call of a cache throws when its database or its disk is at fault.
struct CacheCodeTests {
    private let folder: TemporaryFolder
    private let url: URL
    private let time = ManualClock()

    init() throws {
        folder = try TemporaryFolder()
        url = folder("store.sqlite")
    }

    private func manager(_ recovery: CacheManager.Recovery = .recreate) throws -> CacheManager {
        var configuration = time.configuration
        configuration.recovery = recovery
        return try CacheManager(url: url, configuration: configuration)
    }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled).steady)
    }

    /// A store whose rows are damaged, and whose head is not.
    private func makeDamaged() throws {
        do {
            let manager = try manager()
            try cache(manager).setValues((0..<500).map { ($0, Data(repeating: 1, count: 900)) })
            try manager.maintain()
            try manager.close()
        }
        for ending in ["-wal", "-shm"] { try FileManager.default.removeItem(at: folder("store.sqlite" + ending)) }
        let handle = try FileHandle(forUpdating: url)
        let size = try handle.seekToEnd()
        // The schema and the table of caches stand before.
        for page in stride(from: UInt64(10 * 4096), to: size * 3 / 4, by: 4096) {
            try handle.seek(toOffset: page)
            try handle.write(contentsOf: Data(repeating: 0x5A, count: 4096))
        }
        try handle.close()
    }

    @Test func `damage is corrupt to every call that meets it, and nothing is changed`() throws {
        try makeDamaged()
        let before = try folder.contents()["store.sqlite"]
        let manager = try manager(.fail)
        let cache = try cache(manager)
        let error = expectError(.corrupt) { try cache.value(forKey: 250) }
        #expect(error?.sqliteCode.map { $0 & 0xFF } == 11)
        expectError(.corrupt) { try cache.entry(forKey: 250) }
        expectError(.corrupt) { try cache.values(forKeys: 0..<500) }
        expectError(.corrupt) { try cache.snapshot() }
        expectError(.corrupt) { try cache.sizeOnDisk }
        expectError(.corrupt) { try cache.value(forKey: 250) { _ in Data() } }
        expectError(.corrupt) { try cache.removeValue(forKey: 250) }
        #expect(cache[250] == nil)
        #expect(cache.statistics.failures == 1)
        for (key, _) in cache { Issue.record("\(key)") }
        #expect(cache.statistics.failures == 2)
        try manager.close()
        #expect(try folder.names.allSatisfy { !$0.contains("corrupt") })
        // The room behind them is no content.
        let after = try folder.contents()["store.sqlite"]
        #expect(try #require(after ?? nil).starts(with: try #require(before ?? nil)))
    }

    @Test func `damage that a call meets costs the store once, and the call nothing more`() async throws {
        try makeDamaged()
        let manager = try manager()
        let events = manager.events
        let cache = try cache(manager)
        #expect(try await cache.value(forKey: 250) == nil)
        try await cache.setValue(Data([1]), forKey: 250)
        #expect(try await cache.value(forKey: 250) == Data([1]))
        try await manager.close()
        var kinds: [String] = []
        for await event in events { kinds.append(String("\(event.kind)".prefix { $0 != "(" })) }
        #expect(kinds == ["recovered"])
        let again = try self.manager()
        #expect(try await self.cache(again).value(forKey: 250) == Data([1]))
        #expect(try folder.names.contains("store.sqlite.damaged"))
    }

    /// Has SQLite find that a row of more than a hundred bytes is larger than rows may be, which else takes a thousand million.
    private static let limit = """
        CREATE TRIGGER limited_insert BEFORE INSERT ON entry WHEN length(new.payload) > 100
        BEGIN SELECT length(zeroblob(length(new.payload) * 20000000)); END;
        CREATE TRIGGER limited_update BEFORE UPDATE ON entry WHEN length(new.payload) > 100
        BEGIN SELECT length(zeroblob(length(new.payload) * 20000000)); END;
        """

    @Test func `what a row cannot hold is too large, fails alone, and changes nothing`() throws {
        let manager = try manager()
        let cache = try cache(manager)
        cache[1] = Data([1])
        var shell = try Intruder(url)
        try shell.execute(Self.limit)
        let error = expectError(.tooLarge) { try cache.setValue(Data(count: 101), forKey: 1) }
        #expect(error?.sqliteCode == 18)
        expectError(.tooLarge) { try cache.setValues([1: Data([2]), 2: Data(count: 101)]) }
        expectError(.tooLarge) { try cache.update(1) { $0 = Data(count: 101) } }
        expectError(.tooLarge) {
            try manager.transaction { transaction in
                try transaction.setValue(Data([3]), forKey: 1, in: cache)
                try transaction.setValue(Data(count: 101), forKey: 2, in: cache)
            }
        }
        #expect(try cache.snapshot() == [1: Data([1])])
        try cache.setValue(Data(count: 100), forKey: 2)
        #expect(try cache.count == 2)
        try expectInvariants(cache)
    }

    @Test func `among writes that share a transaction the one that is too large fails alone`() async throws {
        let manager = try manager()
        let cache = try cache(manager)
        var shell = try Intruder(url)
        try shell.execute(Self.limit)
        let store = StoreProbe(manager)
        let tasks = try await onThread {
            try manager.transaction { _ in
                let begun = (0..<10).map { number in
                    Task { () -> CacheError.Code? in
                        do {
                            try await cache.setValue(Data(count: number == 4 ? 101 : 10), forKey: number)
                            return nil
                        } catch {
                            return (error as? CacheError)?.code
                        }
                    }
                }
                try Waiting.until { try store.waitingCount == 10 }
                return begun
            }
        }
        var codes: [CacheError.Code?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes == (0..<10).map { $0 == 4 ? .tooLarge : nil })
        #expect(Array(cache.keys) == [0, 1, 2, 3, 5, 6, 7, 8, 9])
    }
}
