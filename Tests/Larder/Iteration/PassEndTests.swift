import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Passes that are broken off, overtaken, or meet what has vanished.
struct PassEndTests {
    enum Form: CaseIterable { case entries, disk, keys, values, ordered, async }

    /// The keys that a pass gives, one after another to `body`, until that says no.
    private func walk(
        _ cache: Cache<Int, String>, _ form: Form, while goesOn: @Sendable (Int) throws -> Bool
    ) async throws -> [Int] {
        var seen: [Int] = []
        func isLast(_ key: Int) throws -> Bool {
            seen.append(key)
            return try !goesOn(key)
        }
        switch form {
        case .entries: for (key, _) in cache { if try isLast(key) { break } }
        case .disk: for (key, _) in cache.disk { if try isLast(key) { break } }
        case .keys: for key in cache.keys { if try isLast(key) { break } }
        case .values: for value in cache.values { if try isLast(Int(value) ?? -1) { break } }
        case .ordered: for entry in cache.entries(orderedBy: .written) { if try isLast(entry.key) { break } }
        case .async: for try await (key, _) in cache.async { if try isLast(key) { break } }
        }
        return seen
    }

    /// The files that are open, each once: a thread may read over a connection of its own.
    private func openFiles(_ bench: Workbench) throws -> Set<String> {
        try Set(OpenFiles.paths(where: { $0.hasPrefix(bench.folder.realURL.path) }))
    }

    @Test(arguments: Form.allCases, StoreKind.allCases)
    func `a pass that is left early leaves no statement, no transaction and no descriptor`(form: Form, kind: StoreKind)
        async throws
    {
        let bench = try Workbench(kind)
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled, inlineLimit: 4))
        try await cache.setValues((0..<2000).map { ($0, "\($0)") })
        try await cache.setValues((2000..<2010).map { ($0, "000\($0)") })
        #expect(try await walk(cache, form) { $0 < 10 } == Array(0...10))
        let before = try openFiles(bench)
        for end in [1, 600, 1999] { #expect(try await walk(cache, form) { $0 < end } == Array(0...end)) }
        #expect(try openFiles(bench) == before)
        if let url = bench.manager.url { try expectNothingHeld(at: url, bench.time) }
        #expect(try bench.isIdle)
    }

    @Test(arguments: StoreKind.allCases)
    func `a pass that stands half way holds up neither a copy of the log nor a clear`(kind: StoreKind) throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try cache.setValues((0..<2000).map { ($0, "\($0)") })
        var passes = (
            cache.makeIterator(), cache.keys.makeIterator(), cache.entries(orderedBy: .written).makeIterator()
        )
        for _ in 0..<100 { _ = (passes.0.next(), passes.1.next(), passes.2.next()) }
        try cache.setValue("late", forKey: 5000)
        if let url = bench.manager.url { try expectNothingHeld(at: url, bench.time) }
        #expect(try bench.isIdle)
        try cache.removeAll()
        try bench.manager.maintain()
        while passes.0.next() != nil {}
        while passes.1.next() != nil {}
        while passes.2.next() != nil {}
        #expect(cache.statistics.failures == 0)
        try expectInvariants(cache)
    }

    @Test(arguments: Form.allCases.filter { $0 != .keys })
    func `what has vanished by the time that it is reached is skipped, and the rest follows`(form: Form) async throws {
        let bench = try Workbench()
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled, inlineLimit: 0))
        for number in 0..<10 { cache[number] = "\(number)" }
        let file = try await #require(try cache.fileURL(forKey: 6))
        let keys = try await walk(cache, form) { key in
            guard key == 3 else { return true }
            // One was read with the page that the pass stands in, and its file goes; another goes with its row.
            try FileManager.default.removeItem(at: file)
            try cache.remove(8)
            return true
        }
        // A pass may have read ahead.
        #expect(keys == keys.sorted() && Set(keys).isSuperset(of: [0, 1, 2, 3, 4, 5, 7, 9]))
    }

    @Test(arguments: Form.allCases, StoreKind.allCases)
    func `a cache that is superseded half way ends the pass`(form: Form, kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try await cache.setValues((0..<5000).map { ($0, "\($0)") })
        let newer = Locked<Cache<Int, String>?>(nil)
        let seen = try await walk(cache, form) { [bench] key in
            if key == 100 {
                let cache = try bench.numbers(version: "2")
                newer.change { $0 = cache }
            }
            return true
        }
        // The page that it stands in is given still.
        #expect(seen == Array(0..<seen.count) && seen.count > 100 && seen.count < 5000)
        #expect(cache.statistics.failures == 0)
        #expect(try bench.isIdle)
    }

    @Test(arguments: Form.allCases, StoreKind.allCases)
    func `a pass ends though another thread inserts without pause, before it and behind`(form: Form, kind: StoreKind)
        async throws
    {
        let bench = try Workbench(kind)
        let cache = try bench.numbers()
        try await cache.setValues((0..<2000).map { ($0, "\($0)") })
        let (isDone, begun) = (Counter(), Counter())
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            var number = 0
            while isDone.value == 0 {
                number += 1
                // Counted before it is there: a pass never sees more than were begun.
                begun.increment()
                cache[number % 2 == 0 ? 10_000 + number : -number] = "\(number % 2 == 0 ? 10_000 + number : -number)"
            }
            ended.signal()
        }
        try await Waiting.until { begun.value > 10 }
        let given = Counter()
        let seen = try await walk(cache, form) { _ in given.increment() <= 100_000 }
        let count = begun.value
        isDone.increment()
        try await onThread { ended.wait() }
        #expect(Set(seen).count == seen.count)
        #expect(seen.filter { (0..<2000).contains($0) } == Array(0..<2000))
        if seen.count > 100_000 { Issue.record("it follows the insertions") }
        // Nothing that was not inserted.
        #expect(seen.count <= 2000 + count)
        #expect(cache.statistics.failures == 0)
    }
}
