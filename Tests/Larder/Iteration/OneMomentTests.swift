import Foundation
import Larder
import LarderTestSupport
import Testing

/// Reads of many keys while somebody writes all of them in one step.
struct OneMomentTests {
    private let folder: TemporaryFolder
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: ManualClock().configuration)
    }

    enum Read: CaseIterable { case values, snapshot }

    @Test(arguments: [0, 1, 2], Read.allCases)
    func `what is read together was written together, whichever tier has it`(inMemory: Int, read: Read) throws {
        try expectNothingTorn(CacheOptions(memory: MemoryLimits(countLimit: inMemory)), read)
    }

    @Test(arguments: Read.allCases)
    func `what is read together from files was written together`(read: Read) throws {
        try expectNothingTorn(CacheOptions(memory: .disabled, inlineLimit: 0), read)
    }

    @Test func `a file that is damaged keeps none of the others from being read`() throws {
        let cache: Cache<Int, Data> = try manager.cache(
            named: "files", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled, inlineLimit: 0))
        try cache.setValues((1...4).map { ($0, Data([UInt8($0)])) })
        for key in [2, 3] { try FileManager.default.removeItem(at: #require(try cache.fileURL(forKey: key))) }
        for _ in 0..<2 { #expect(try cache.values(forKeys: [1, 2, 3, 4]) == [1: Data([1]), 4: Data([4])]) }
        #expect(try cache.snapshot() == [1: Data([1]), 4: Data([4])])
        // Each counts when its row is deleted, in the background.
        try Waiting.until { cache.statistics.failures >= 2 }
    }

    /// Reads two keys while somebody writes both in one step, again and again.
    private func expectNothingTorn(_ options: CacheOptions, _ read: Read) throws {
        let cache: Cache<Int, Int> = try manager.cache(
            named: "pair", version: "1", maxAge: .hours(1), options: options.steady)
        try cache.setValues([(1, 0), (2, 0)])
        let (isDone, begun, ended) = (Counter(), Counter(), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            do {
                // Memory that has room for one keeps the latter.
                for number in 1...1500 {
                    try cache.setValues(number % 2 == 0 ? [(1, number), (2, number)] : [(2, number), (1, number)])
                    // Nearly all of it beside somebody who reads.
                    if number == 10 { try Waiting.until { begun.value > 0 } }
                }
            } catch {
                Issue.record(error)
            }
            isDone.increment()
            ended.signal()
        }
        var (reads, torn, last) = (0, 0, 0)
        // Should a read throw, the thread must not wait for it.
        defer { begun.increment() }
        while isDone.value == 0 {
            let both = read == .values ? try cache.values(forKeys: [1, 2]) : try cache.snapshot()
            if both.count != 2 || both[1] != both[2] || both[1] ?? 0 < last { torn += 1 }
            last = both[1] ?? 0
            reads += 1
            begun.increment()
        }
        ended.wait()
        #expect(torn == 0, "of \(reads)")
        #expect(reads > 0)
        #expect(try cache.values(forKeys: [1, 2]) == [1: 1500, 2: 1500])
        try expectInvariants(cache)
    }
}
