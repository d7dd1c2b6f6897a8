import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Uses that are noted in memory, until they are written down.
struct NotedUseTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()
    private let told = Told<CacheError.Code>()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func manager(_ change: (inout CacheManager.Configuration) -> Void = { _ in }) throws -> CacheManager {
        var configuration = time.configuration
        configuration.busyTimeout = .zero
        configuration.log = { [told] in if let code = $0.error?.code { told.add(code) } }
        change(&configuration)
        return try CacheManager(url: folder("store.sqlite"), configuration: configuration)
    }

    private func cache(_ manager: CacheManager, _ isOnDiskAlone: Bool) throws -> Cache<Int, Int> {
        var options = CacheOptions().steady
        if isOnDiskAlone { options.memory = .disabled }
        return try manager.cache(named: "a", version: "1", maxAge: .days(1), options: options)
    }

    /// What the rows say, in their order of use.
    private func rows(_ manager: CacheManager) throws -> [(key: Int, accessedAt: Date)] {
        try manager.store().read { (connection) throws(SQLiteError) in
            try connection.with(.uses) { (statement) throws(SQLiteError) in
                var rows: [(Int, Date)] = []
                while try statement.step() {
                    rows.append(
                        (Int(statement.int64(0)), Date(timeIntervalSince1970: Double(statement.int64(1)) / 1000)))
                }
                return rows
            }
        }
    }

    // case 90
    @Test(arguments: [false, true])
    func `ten thousand reads take one transaction, ten seconds later`(isOnDiskAlone: Bool) throws {
        let manager = try manager()
        let cache = try cache(manager, isOnDiskAlone)
        try cache.setValues((0..<100).map { ($0, $0) })
        let queue = try manager.store().queue
        let before = queue.transactions
        for _ in 0..<100 { for key in (0..<100).reversed() { #expect(try cache.value(forKey: key) == key) } }
        #expect(queue.transactions == before)
        #expect(try rows(manager).map(\.key) == Array(0..<100))
        time.advance(by: .seconds(10))
        #expect(queue.transactions == before + 1)
        #expect(try rows(manager).map(\.key) == (0..<100).reversed())
        // Nothing is left that waits, but for the end of what is in memory.
        time.advance(by: .seconds(10))
        #expect(time.pendingCount == (isOnDiskAlone ? 0 : 1) && queue.transactions == before + 1)
    }

    @Test(arguments: [false, true], [false, true])
    func `uses that could not be written down are written down later, though nobody asks`(
        isOnDiskAlone: Bool, isHandleGone: Bool
    ) throws {
        let manager = try manager()
        do {
            let cache = try cache(manager, isOnDiskAlone)
            cache[1] = 1
            time.set(time.now + 60)
            #expect(cache[1] == 1)
            if !isHandleGone { try fail(manager) }
            withExtendedLifetime(cache) {}
        }
        if isHandleGone {
            try fail(manager)
            #expect(try manager.store().live.all.isEmpty)
        }
    }

    /// Holds up two attempts, and expects that the third one succeeds.
    private func fail(_ manager: CacheManager) throws {
        let used = time.now
        #expect(try rows(manager).map(\.accessedAt) == [used - 60])
        var intruder = try Intruder(folder("store.sqlite"))
        try intruder.execute("BEGIN IMMEDIATE")
        for count in 1...2 {
            time.advance(by: .seconds(10))
            #expect(told.all == Array(repeating: .busy, count: count))
        }
        try intruder.execute("ROLLBACK")
        #expect(try rows(manager).map(\.accessedAt) == [used - 60])
        time.advance(by: .seconds(10))
        #expect(try rows(manager).map(\.accessedAt) == [used])
        #expect(told.all.count == 2)
    }

    @Test func `a use that comes while others are written down does not wait for ever`() throws {
        let hook = Locked<(calls: Int, body: (@Sendable () -> Void)?)>((0, nil))
        let manager = try manager { [time] configuration in
            configuration.clock = {
                let body = hook.change { hook in
                    hook.calls -= 1
                    return hook.calls == 0 ? hook.body : nil
                }
                body?()
                return time.now
            }
        }
        let cache = try cache(manager, true)
        try cache.setValues([1: 1, 2: 2])
        let written = time.now
        time.set(written + 60)
        #expect(cache[1] == 1)
        let used = Counter()
        // The first time that it is asked for is when the uses are collected, the second when they have been.
        hook.change { hook in
            hook = (2, { if cache[2] == 2 { used.increment() } })
        }
        time.advance(by: .seconds(10))
        #expect(used.value == 1)
        #expect(try rows(manager).map(\.accessedAt) == [written, written + 60])
        time.advance(by: .seconds(10))
        #expect(try rows(manager).map(\.accessedAt) == [written + 60, written + 70])
        hook.change { $0 = (0, nil) }
    }

    // case 150
    @Test func `what was read a moment ago is swept by its write`() throws {
        let manager = try manager()
        let cache = try cache(manager, false)
        cache[1] = 1
        time.set(time.now + 86_400)
        #expect(cache[1] == 1)
        time.set(time.now + 0.001)
        #expect(try cache.removeExpired() == 1)
        #expect(try rows(manager).isEmpty)
    }

    @Test(arguments: [MaxAge.minutes(1), .minutes(1).sinceLastAccess])
    func `a sub-cache whose last handle is gone is swept, with uses that are not written down`(age: MaxAge) throws {
        let manager = try manager()
        do {
            let cache: Cache<Int, Int> = try manager.cache(
                named: "a", version: "1", maxAge: age, options: CacheOptions().steady)
            try cache.setValues((0..<10).map { ($0, $0) })
            time.set(time.now + 30)
            for key in 0..<10 { #expect(cache[key] == key) }
        }
        // It is kept for what it noted.
        #expect(try manager.store().live.all.count == 1)
        time.set(time.now + 3600)
        #expect(try manager.maintain().expired == 10)
        #expect(try rows(manager).isEmpty)
        #expect(try manager.store().live.all.isEmpty)
    }
}

extension SQL {
    fileprivate static let uses = SQL("SELECT key, accessed_at FROM entry ORDER BY ifnull(used, revision)")
}
