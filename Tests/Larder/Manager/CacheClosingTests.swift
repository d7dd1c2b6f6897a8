import Foundation
import Larder
import LarderTestSupport
import Testing

/// What a store leaves open when it is closed or let go of, and what becomes of work that is under way.
struct CacheClosingTests {
    private let folder: TemporaryFolder
    private let time = ManualClock()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func manager() throws -> CacheManager {
        try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
    }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled, inlineLimit: 100))
    }

    private var openFiles: Int {
        get throws { try OpenFiles.paths(where: { $0.hasPrefix(folder.realURL.path) }).count }
    }

    /// Has several readers keep their transactions open, for a timer to end.
    private func read(_ cache: Cache<Int, Data>) throws {
        try cache.setValues((0..<100).map { ($0, Data(count: $0 * 3)) })
        let (failures, together, ended) = (Counter(), Counter(), Counter())
        @Sendable func readOften(_ cache: Cache<Int, Data>?) {
            do {
                together.increment()
                try Waiting.until { together.value == 4 }
                for key in 0..<2000 where try cache?.value(forKey: key % 100) == nil { failures.increment() }
            } catch {
                failures.increment()
            }
        }
        for _ in 0..<4 {
            // Taken out by the thread, whose code lives on for a while behind its last line.
            let held = Locked<Cache<Int, Data>?>(cache)
            Thread.detachNewThread {
                readOften(held.change { $0.take() })
                ended.increment()
            }
        }
        try Waiting.until { ended.value == 4 }
        #expect(failures.value == 0)
        #expect(time.pendingCount > 0)
    }

    @Test(
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"), "open files are not listed"),
        arguments: [false, true])
    func `nothing is open any more when closing has returned, though timers wait`(isAsync: Bool) async throws {
        let manager = try manager()
        let cache = try cache(manager)
        try read(cache)
        var pass = cache.makeIterator()
        #expect(pass.next()?.key == 0)
        #expect(try openFiles > 3)
        if isAsync { try await manager.close() } else { try { try manager.close() }() }
        #expect(try openFiles == 0)
        // Whoever comes too late opens nothing.
        expectError(.closed) { try cache.value(forKey: 1) }
        while pass.next() != nil {}
        time.advance(by: .seconds(60))
        #expect(try openFiles == 0)
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"), "open files are not listed"))
    func `nothing is open any more when the last handle was let go of, though timers wait`() throws {
        do {
            let cache = try cache(manager())
            try read(cache)
            #expect(try openFiles > 3)
        }
        #expect(try openFiles == 0)
        time.advance(by: .seconds(60))
        #expect(try openFiles == 0)
        #expect(try cache(manager()).count == 100)
    }

    @Test func `who asks for no key at all is told too that the store is closed`() async throws {
        let manager = try manager()
        let cache = try cache(manager)
        #expect(try { try cache.values(forKeys: []) }().isEmpty)
        #expect(try { try cache.values(forKeys: []) { _ in [:] } }().isEmpty)
        #expect(try await cache.values(forKeys: []).isEmpty)
        #expect(try await cache.values(forKeys: []) { _ in [:] }.isEmpty)
        try await manager.close()
        expectError(.closed) { try cache.values(forKeys: []) }
        expectError(.closed) { try cache.values(forKeys: []) { _ in [:] } }
        let error = await #expect(throws: CacheError.self) { try await cache.values(forKeys: []) }
        #expect(error?.code == .closed)
        let other = await #expect(throws: CacheError.self) { try await cache.values(forKeys: []) { _ in [:] } }
        #expect(other?.code == .closed)
        let third = await #expect(throws: CacheError.self) {
            try await cache.values(forKeys: []) { _ async throws in [:] }
        }
        #expect(third?.code == .closed)
    }

    /// Writes that wait for the end of a transaction while everybody else lets go of the store.
    private func begun(_ count: Int) async throws -> [Task<Void, any Error>] {
        let manager = try manager()
        let cache = try cache(manager)
        let store = StoreProbe(manager)
        return try await onThread {
            try manager.transaction { _ in
                let tasks = (0..<count).map { key in Task { try await cache.setValue(Data(count: key), forKey: key) } }
                try Waiting.until { try store.waitingCount == count }
                return tasks
            }
        }
    }

    @Test func `work that was accepted is finished, though the handle and its manager are let go of`() async throws {
        for task in try await begun(50) { try await task.value }
        let cache = try cache(manager())
        #expect(
            try await cache.snapshot().mapValues(\.count) == Dictionary(uniqueKeysWithValues: (0..<50).map { ($0, $0) })
        )
    }

    @Test func `work that comes to its turn after closing is done, or told that the store is closed`() async throws {
        let manager = try manager()
        let cache = try cache(manager)
        let tasks = (0..<200).map { key in
            Task { () -> CacheError.Code? in
                do {
                    try await cache.setValue(Data(count: 1), forKey: key)
                    return nil
                } catch let error as CacheError {
                    return error.code
                }
            }
        }
        try await manager.close()
        var written: [Int] = []
        for (key, task) in tasks.enumerated() {
            let code = try await task.value
            #expect(code == nil || code == .closed)
            if code == nil { written.append(key) }
        }
        #expect(try Array(self.cache(self.manager()).keys) == written)
    }
}
