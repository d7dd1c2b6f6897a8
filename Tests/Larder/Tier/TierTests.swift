import Foundation
import Larder
import LarderTestSupport
import Testing

struct TierTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    @Test func `what leaves memory stays on disk`() throws {
        let cache = try bench.numbers()
        for number in 1...10 { try cache.setValue("\(number)", forKey: number, cost: 10) }
        #expect(cache.memory.count == 10)
        #expect(cache.memory.totalCost == 100)
        cache.memory.trim(toCount: 7)
        #expect(cache.memory.map(\.key) == [4, 5, 6, 7, 8, 9, 10])
        cache.memory.trim(toCost: 35)
        #expect(cache.memory.map(\.key) == [8, 9, 10])
        #expect(cache.memory.contains(9))
        #expect(!cache.memory.contains(1))
        cache.memory.removeAll()
        #expect(cache.memory.count == 0)
        #expect(cache.memory.totalCost == 0)
        #expect(try cache.disk.count == 10)
        #expect(cache[1] == "1")
        #expect(cache.memory.contains(1))
    }

    @Test func `pressure halves or empties the memory of every cache, and nothing on disk`() async throws {
        let (numbers, words) = (try bench.numbers(), try bench.words())
        let events = bench.manager.events
        for number in 0..<10 {
            try await numbers.setValue("\(number)", forKey: number)
            try await words.setValue(number, forKey: "\(number)")
        }
        try bench.handlePressure(.warning)
        #expect(numbers.memory.map(\.key) == Array(5..<10))
        #expect(words.memory.map(\.value) == Array(5..<10))
        try bench.handlePressure(.critical)
        #expect(numbers.memory.count == 0 && words.memory.count == 0)
        #expect(numbers.memory.totalCost == 0 && numbers.statistics.memoryEvictions == 0)
        #expect(try numbers.count == 10 && words.count == 10)
        #expect(numbers[0] == "0" && words["9"] == 9)
        try await bench.manager.close()
        bench.manager.handleMemoryPressure(.critical)
        var told: [String] = []
        for await event in events {
            if case .memoryPressure(let level) = event.kind { told.append("\(event.cacheName ?? "") \(level)") }
        }
        #expect(
            told.sorted() == ["numbers critical", "numbers warning", "words critical", "words warning"])
    }

    @Test func `what has expired leaves memory by hand`() async throws {
        let cache = try bench.numbers(.minutes(1))
        try await cache.setValue("usual", forKey: 1)
        try await cache.setValue("long", forKey: 2, maxAge: .hours(1))
        #expect(cache.memory.removeExpired() == 0)
        bench.time.advance(by: .seconds(120))
        #expect(await !cache.memory.contains(1))
        #expect(await cache.memory.contains(2))
        #expect(await cache.memory.entries().map(\.value) == ["long"])
        #expect(cache.memory.count == 2 && cache.memory.removeExpired() == 1 && cache.memory.count == 1)
        try expectInvariants(cache)
    }

    @Test(arguments: [true, false])
    func `the disk is read and written without a copy in memory`(wasInMemory: Bool) async throws {
        let cache = try bench.numbers()
        if wasInMemory { try await cache.setValue("old", forKey: 1) }
        var changes = cache.changes().makeAsyncIterator()
        cache.disk[1] = "new"
        #expect(cache.memory[1] == nil && cache.memory.count == 0)
        #expect(cache.disk[1] == "new" && cache.memory.count == 0)
        bench.time.advance(by: .milliseconds(100))
        #expect(await changes.next()?.updated == [1: "new"])
        #expect(cache[1] == "new" && cache.memory[1] == "new")
        try await cache.disk.setValue("newer", forKey: 1)
        #expect(cache.memory[1] == nil && cache[1] == "newer")
        cache.disk[1] = nil
        #expect(cache[1] == nil && cache.disk[1] == nil && cache.memory.count == 0)
        try await bench.manager.close()
        cache.disk[1] = "closed"
        #expect(cache.disk[1] == nil && cache.statistics.failures == 2)
    }

    @Test func `limits of memory can be changed while in use`() throws {
        let cache = try bench.numbers()
        #expect(cache.memory.countLimit == nil)
        #expect(cache.memory.costLimit == nil)
        #expect(cache.memory.byteLimit == 32 << 20)
        for number in 1...10 { try cache.setValue("\(number)", forKey: number, cost: 10) }
        cache.memory.countLimit = 4
        #expect(cache.memory.map(\.key) == [7, 8, 9, 10])
        cache.memory.costLimit = 20
        #expect(cache.memory.map(\.key) == [9, 10])
        cache.memory.countLimit = nil
        cache.memory.costLimit = nil
        for number in 1...10 { try cache.setValue("\(number)", forKey: number, cost: 10) }
        #expect(cache.memory.count == 10)
        cache.memory.countLimit = -3
        #expect(cache.memory.count == 0)
        #expect(try cache.count == 10)
    }

    @Test(arguments: [
        DiskLimits(countLimit: -1), DiskLimits(sizeLimit: -1), DiskLimits(countLimit: .min, sizeLimit: .min),
    ])
    func `a limit of the disk below 0 is refused, and takes nothing away`(below: DiskLimits) throws {
        let words = try bench.words()
        words["a"] = 1
        let error = #expect(throws: CacheError.self) { try bench.words(.hours(1), CacheOptions(disk: below)) }
        #expect(error?.code == .invalidConfiguration)
        try words.disk.setLimits(DiskLimits(countLimit: 5, sizeLimit: 500))
        let refusal = #expect(throws: CacheError.self) { try words.disk.setLimits(below) }
        #expect(refusal?.code == .invalidConfiguration)
        #expect(words.disk.limits == DiskLimits(countLimit: 5, sizeLimit: 500))
        let failures = words.statistics.failures
        words.disk.limits = below
        #expect(words.statistics.failures == failures + 1)
        words.disk.limits = DiskLimits(countLimit: 4)
        #expect(words.disk.limits == DiskLimits(countLimit: 4))
        #expect(try words.count <= 4)
        #expect(words["a"] == 1)
    }

    @Test func `a limit below 0 is 0, in the tier of memory and in a memory cache`() throws {
        let cache = try bench.numbers(
            .hours(1), CacheOptions(memory: MemoryLimits(countLimit: -5, costLimit: -6)))
        #expect(cache.memory.countLimit == 0 && cache.memory.costLimit == 0)
        let words = try bench.words()
        words.memory.countLimit = -1
        words.memory.costLimit = .min
        #expect(words.memory.countLimit == 0 && words.memory.costLimit == 0)
        let memory = MemoryCache<Int, Int>(countLimit: -5, costLimit: -6, clearsOnMemoryPressure: false)
        #expect(memory.countLimit == 0 && memory.costLimit == 0)
        memory.countLimit = .min
        memory.costLimit = -1
        #expect(memory.countLimit == 0 && memory.costLimit == 0)
    }

    @Test func `what is removed or trimmed on disk leaves both tiers`() throws {
        let cache = try bench.numbers()
        for number in 1...10 { cache[number] = "\(number)" }
        #expect(try cache.disk.trim(toCount: 6) == 4)
        #expect(cache.memory.map(\.key) == Array(5...10))
        let size = try cache.disk.size
        #expect(try cache.sizeOnDisk == size)
        #expect(try cache.disk.trim(toSize: size / 2) == 4)
        #expect(try cache.disk.contains(10))
        #expect(try !cache.disk.contains(5))
        #expect(cache.disk.map(\.key) == [9, 10])
        try cache.disk.removeAll()
        #expect(cache.memory.count == 0)
        #expect(try cache.disk.count == 0)
    }

    @Test func `a task asks, limits, trims and empties the disk as others do`() async throws {
        let cache = try bench.numbers()
        try await cache.setValues((1...10).map { ($0, "\($0)") })
        #expect(try await cache.disk.trim(toCount: 8) == 2)
        try await cache.disk.setLimits(DiskLimits(countLimit: 6))
        #expect(try await cache.disk.contains(10))
        #expect(try await !cache.disk.contains(4))
        #expect(try await cache.disk.trim(toSize: 0) == 6)
        cache[1] = "a"
        #expect(try await cache.disk.removeAll() == 1)
        #expect(try cache.disk.count == 0 && cache.memory.count == 0)
    }

    @Test func `limits of the disk take effect at once`() throws {
        let cache = try bench.numbers()
        for number in 1...100 { cache[number] = "\(number)" }
        #expect(cache.disk.limits == DiskLimits())
        try cache.disk.setLimits(DiskLimits(countLimit: 10, sizeLimit: nil))
        #expect(cache.disk.limits == DiskLimits(countLimit: 10))
        #expect(try cache.count == 10)
        #expect(cache.memory.count == 10)
    }

    @Test func `memory shows neither what is over nor what was removed during a pass`() throws {
        let cache = try bench.numbers(.minutes(1))
        try cache.setValue("short", forKey: 0, maxAge: .seconds(1))
        for number in 1...5 { cache[number] = "\(number)" }
        bench.time.advance(by: .seconds(2))
        #expect(!cache.memory.contains(0))
        var seen: [Int] = []
        for (key, _) in cache.memory {
            seen.append(key)
            cache[4] = nil
            cache[100 + key] = "new"
            _ = cache[1]
        }
        #expect(seen == [1, 2, 3, 5])
        bench.time.advance(by: .seconds(120))
        #expect(cache.memory.map(\.key) == [])
    }

    @Test func `a value that is too costly for memory is kept on disk`() throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: MemoryLimits(costLimit: 10)))
        try cache.setValue("dear", forKey: 1, cost: 11)
        #expect(cache.memory.count == 0)
        #expect(cache[1] == "dear")
    }
}
