import Foundation
import Larder
import LarderTestSupport
import Testing

/// How exactly the moment of the last access is stored.
struct AccessGrainTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(
        _ maxAge: MaxAge = .unlimited, _ change: (inout CacheOptions) -> Void = { _ in }
    ) throws -> Cache<Int, Data> {
        var options = CacheOptions()
        options.clearsOnMemoryPressure = false
        change(&options)
        return try manager.cache(named: "a", version: "1", maxAge: maxAge, options: options)
    }

    private static var value: Data { Data(count: 300) }

    /// The bytes of the database and of its log.
    private func bytes() throws -> [Data] {
        try ["store.sqlite", "store.sqlite-wal"].map { try Data(contentsOf: place.folder($0)) }
    }

    @Test(arguments: [false, true])
    func `a cache that is only read writes nothing within the grain, and once after it`(isInMemory: Bool) throws {
        let cache = try cache { if !isInMemory { $0.memory = .disabled } }
        try cache.setValues((0..<500).map { ($0, Self.value) })
        // A copy of the log that the write has scheduled finds nothing to do.
        try manager.maintain()
        let before = try bytes()
        for round in 0..<5 {
            for key in 0..<500 { #expect(cache[key] != nil) }
            place.clock.advance(by: .seconds(4 * 3600))
            try manager.flush()
            #expect(try bytes() == before, "round \(round)")
        }
        place.clock.advance(by: .seconds(4 * 3600))
        // Hits ask no clock: they count as of the last flush.
        try manager.flush()
        for _ in 0..<3 { for key in 0..<500 { #expect(cache[key] != nil) } }
        try manager.maintain()
        let after = try bytes()
        #expect(after != before)
        for key in 0..<500 { #expect(cache[key] != nil) }
        try manager.flush()
        #expect(try bytes() == after)
        #expect(try cache.metadata(forKey: 7)?.accessedAt == place.clock.now)
    }

    @Test func `the default follows a sliding age, then a limit on disk, then is a day`() throws {
        func isRenewed(after seconds: Double, _ maxAge: MaxAge, _ disk: DiskLimits = DiskLimits()) throws -> Bool {
            let cache = try cache(maxAge) { ($0.memory, $0.disk) = (.disabled, disk) }
            cache[1] = Self.value
            let written = place.clock.now
            place.clock.set(written + seconds)
            #expect(cache[1] != nil)
            try manager.flush()
            // Another store sees what is on the disk.
            let other: Cache<Int, Data> = try place.manager().cache(named: "a", version: "1", maxAge: maxAge)
            return try other.metadata(forKey: 1)?.accessedAt == written + seconds
        }
        #expect(try !isRenewed(after: 99, .seconds(1600).sinceLastAccess))
        #expect(try isRenewed(after: 100, .seconds(1600).sinceLastAccess))
        #expect(try !isRenewed(after: 3599, .unlimited, DiskLimits(countLimit: 10)))
        #expect(try isRenewed(after: 3600, .unlimited, DiskLimits(countLimit: 10)))
        #expect(try !isRenewed(after: 86_399, .unlimited))
        #expect(try isRenewed(after: 86_400, .unlimited))
    }

    @Test func `an entry with a sliding age of its own has a grain of its own`() throws {
        let cache = try cache { $0.memory = .disabled }
        try cache.setValue(Self.value, forKey: 1, maxAge: .seconds(160).sinceLastAccess)
        for _ in 0..<40 {
            place.clock.advance(by: .seconds(10))
            #expect(cache[1] != nil)
        }
        place.clock.advance(by: .seconds(161))
        #expect(cache[1] == nil)
    }

    @Test func `limits and trims go by what memory knows`() throws {
        let cache = try cache { $0.disk = DiskLimits(countLimit: 100) }
        for key in 0..<100 { cache[key] = Self.value }
        for key in 0..<50 { #expect(cache[key] != nil) }
        for key in 100..<150 { cache[key] = Self.value }
        try manager.maintain()
        #expect(Array(cache.keys) == Array(0..<50) + Array(100..<150))
        place.clock.advance(by: .milliseconds(1))
        for key in 100..<150 { cache[key] = Self.value }
        for key in 0..<25 { #expect(cache[key] != nil) }
        #expect(try cache.trim(toCount: 75) == 25)
        #expect(Array(cache.keys) == Array(0..<25) + Array(100..<150))
    }

    @Test func `the limit of the whole store goes by what memory knows`() throws {
        let manager = try TemporaryStore(of: #fileID).manager { $0.sizeLimit = 40_000 }
        let (one, other): (Cache<Int, Data>, Cache<Int, Data>) = (
            try manager.cache(named: "one", version: "1", maxAge: .unlimited),
            try manager.cache(named: "other", version: "1", maxAge: .unlimited)
        )
        for key in 0..<50 { one[key] = Self.value }
        for key in 0..<50 { other[key] = Self.value }
        for key in 0..<50 { #expect(one[key] != nil) }
        for key in 100..<150 { one[key] = Self.value }
        try manager.maintain()
        for key in 0..<50 { #expect(one[key] != nil) }
        #expect(try other.count < 50)
    }

    @Test func `with a grain of zero every access is written down`() throws {
        let cache = try cache { ($0.memory, $0.accessGrain) = (.disabled, .zero) }
        cache[1] = Self.value
        for _ in 0..<3 {
            place.clock.advance(by: .seconds(1))
            #expect(cache[1] != nil)
            try manager.flush()
            #expect(try cache.metadata(forKey: 1)?.accessedAt == place.clock.now)
        }
    }

    @Test func `a negative grain is refused`() throws {
        let error = #expect(throws: CacheError.self) { _ = try cache { $0.accessGrain = .seconds(-1) } }
        #expect(error?.code == .invalidConfiguration)
    }
}
