import Foundation
import Larder
import LarderTestSupport
import Testing

/// What limits take, in which order, and what is told of it.
struct EvictionTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func cache(
        _ manager: CacheManager, _ name: String = "a", _ disk: DiskLimits = DiskLimits(), maxAge: MaxAge = .hours(1)
    ) throws -> Cache<Int, Data> {
        try manager.cache(
            named: name, version: "1", maxAge: maxAge, options: CacheOptions(disk: disk, inlineLimit: 1000).steady)
    }

    @Test func `the limit of the store evicts the least recently used entries of a cache that nobody has open`() throws
    {
        let manager = try place.manager { $0.sizeLimit = 100_000 }
        do {
            let forgotten = try cache(manager, "forgotten")
            for key in 0..<10 {
                try forgotten.setValue(Data(count: key % 2 == 0 ? 900 : 5000), forKey: key, pinned: key == 1)
            }
            // Used last.
            #expect(forgotten[0]?.count == 900)
        }
        try manager.flush()
        let current = try cache(manager, "current")
        func count() throws -> Int { try manager.cacheInfo().first { $0.name == "forgotten" }?.count ?? 0 }
        func size() throws -> Int64 { try manager.cacheInfo().map(\.sizeOnDisk).reduce(0, +) }
        var written = 0
        while try count() > 6, written < 100 {
            current[written] = Data(count: 5000)
            written += 1
            #expect(try size() <= 110_000)
        }
        #expect(try current.count == written)
        #expect(current.statistics.sizeEvictions == 0)
        let forgotten = try cache(manager, "forgotten")
        let keys = Array(forgotten.keys)
        #expect(keys.count <= 6 && keys.contains(1))
        // In their order of use.
        #expect(Array([0, 9, 8, 7, 6, 5, 4, 3, 2].prefix(keys.count - 1)).sorted() == keys.filter { $0 != 1 })
        #expect(try place.spilledFiles().count == written + keys.count { $0 % 2 == 1 })
        #expect(try StoreProbe(manager).fileProblems() == [])
        try manager.maintain()
        #expect(try size() <= 100_000)
        try expectInvariants(forgotten)
        try expectInvariants(current)
    }

    /// What lets entries be served after their end.
    enum Keeping: CaseIterable { case generator, option }

    @Test(arguments: Keeping.allCases)
    func `what may be served after its end goes in the order of use, as what has not expired`(
        keeping: Keeping
    ) async throws {
        let manager = try place.manager()
        let events = manager.events
        let cache: Cache<Int, Int> = try await manager.cache(
            named: "a", version: "1", maxAge: .seconds(60),
            options: CacheOptions(
                disk: DiskLimits(countLimit: 3), keepsExpired: keeping == .option ? .seconds(600) : .zero
            ).steady)
        let policy = GenerationPolicy(staleOnError: keeping == .generator ? .seconds(600) : .zero)
        let value = cache.generator(policy) { _ in throw Offline() }
        cache[1] = 1
        place.clock.set(place.clock.now + 100)
        for key in 2...3 { cache[key] = key }
        // It is there, and served.
        #expect(try StoreProbe(manager).entryCount() == 3)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true)?.value == 1)
        if keeping == .generator { #expect(try await value(1) == 1) }
        cache.resetStatistics()
        // The first one to go is the one that was written first, whether or not it has expired.
        #expect(cache[2] == 2)
        place.clock.advance(by: .milliseconds(1))
        cache[4] = 4
        #expect(try await cache.entry(forKey: 1, allowingExpired: true) == nil)
        place.clock.set(place.clock.now + 100)
        for key in 5...6 { cache[key] = key }
        #expect(try await cache.entry(forKey: 2, allowingExpired: true) == nil)
        #expect(try await cache.entry(forKey: 4, allowingExpired: true)?.isExpired == true)
        #expect(try StoreProbe(manager).entryCount() == 3)
        let statistics = cache.statistics
        #expect(statistics.countEvictions == 3)
        try await manager.close()
        var told: [String: CacheEvent.Kind] = [:]
        for await event in events where event.kind != .refreshFailed { told[event.key ?? ""] = event.kind }
        #expect(told == ["1": .evicted(.count), "2": .evicted(.count), "3": .evicted(.count)])
    }

    enum Reason: CaseIterable { case trim, limit, limitOfAll, floor }

    @Test(arguments: Reason.allCases)
    func `who is told of an eviction hears its reason, and finds the entry gone from both tiers`(
        reason: Reason
    ) async throws {
        // The order in which they were used.
        let order = [3, 1, 4, 0, 2]
        let home = Locked<Cache<Int, Data>?>(nil)
        let (told, found) = (Counter(), Told<Int>())
        let manager = try place.manager { configuration in
            if reason == .limitOfAll { configuration.sizeLimit = 1000 }
            if reason == .floor { configuration.freeSpaceFloor = .max }
            configuration.log = { message in
                guard message.text.contains("was evicted"), let cache = home.value else { return }
                let number = told.increment()
                guard number <= order.count else { return found.add(-1) }
                let key = order[number - 1]
                do {
                    if cache.memory.contains(key) { found.add(key) }
                    if try cache.contains(key) || cache.disk.value(forKey: key) != nil { found.add(key) }
                } catch {
                    Issue.record(error)
                }
            }
        }
        let events = manager.events
        let cache = try cache(manager, "a", DiskLimits(sizeLimit: reason == .limit ? 1000 : nil))
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        for key in order.sorted() { cache[key] = Data(count: 200) }
        for key in order {
            place.clock.advance(by: .milliseconds(1))
            #expect(await cache.memory.contains(key) && cache[key]?.count == 200)
        }
        switch reason {
        case .trim: #expect(try await cache.trim(toSize: 0) == 5)
        case .limit, .limitOfAll: cache[9] = Data(count: 1000)
        case .floor: #expect(try await manager.maintain().trimmed == 5)
        }
        #expect(told.value == 5 && found.all == [])
        let statistics = cache.statistics
        #expect(statistics.sizeEvictions == (reason == .floor ? 0 : 5))
        #expect(statistics.spaceEvictions == (reason == .floor ? 5 : 0))
        try await manager.close()
        var keys: [String] = []
        for await event in events {
            #expect(event.kind == .evicted(reason == .floor ? .freeSpace : .size))
            keys.append(event.key ?? "")
        }
        #expect(keys == order.map(String.init))
    }

    @Test func `a floor that cannot be met leaves the entry just written, and those that are pinned`() throws {
        let manager = try place.manager { $0.freeSpaceFloor = .max }
        let cache = try cache(manager)
        try cache.setValue(Data(count: 10), forKey: -1, pinned: true)
        for key in 0..<12 {
            // After a floor could not be met, the next look comes a minute later.
            place.clock.advance(by: .seconds(61))
            cache[key] = Data(count: 1 << 20)
            #expect(Array(cache.keys) == [-1, key])
        }
        #expect(cache.statistics.spaceEvictions == 11)
        // Maintenance makes no exception.
        try manager.maintain()
        #expect(Array(cache.keys) == [-1])
        #expect(try StoreProbe(manager).fileProblems() == [])
    }
}
