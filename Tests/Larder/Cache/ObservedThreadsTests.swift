import Foundation
import Larder
import LarderTestSupport
import Testing

/// A reader that follows a stream while many threads change everything there is to change.
struct ObservedThreadsTests {
    private static let last = -1

    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    @Test(arguments: [Duration.zero, .milliseconds(20)])
    func `batches applied one after another come to what is there, and name no key twice`(
        interval: Duration
    ) async throws {
        let cache = try bench.numbers(.minutes(1))
        let sameCache = try bench.numbers(.minutes(1))
        let stream = cache.changes(every: interval)
        let seed = Seeded().seed
        async let followed = Self.follow(stream, cache)
        let handles = [cache, sameCache, cache, sameCache]
        let failures = try await onThread { [bench] in
            errors(ofThreads: handles.count) { thread in
                var random = Seeded(seed &+ UInt64(thread))
                for step in 0..<400 {
                    try Self.change(handles[thread], thread * 1000 + step, &random)
                    // Intervals end while others write, and so do some entries.
                    bench.time.advance(by: .milliseconds(5))
                }
            }
        }
        #expect(failures == [], "seed \(seed)")
        bench.time.advance(by: .seconds(1))
        try await cache.removeExpired()
        // Nothing changes any more: whatever is pending comes with this, or came before.
        cache[Self.last] = "last"
        bench.time.advance(by: .milliseconds(20))
        let (contents, strange) = try await followed
        #expect(strange == [], "seed \(seed)")
        #expect(try await contents == cache.snapshot(), "seed \(seed)")
    }

    /// Applies batches until the last key is there; with what is wrong with them.
    private static func follow(
        _ stream: AsyncStream<CacheChanges<Int, String>>, _ cache: Cache<Int, String>
    ) async throws -> (contents: [Int: String], strange: [String]) {
        var contents: [Int: String] = [:]
        var strange: [String] = []
        for await changes in stream {
            let both = changes.removed.intersection(changes.updated.keys)
            if !both.isEmpty { strange.append("\(both) are updated and removed") }
            if changes.isReset {
                if !changes.updated.isEmpty || !changes.removed.isEmpty { strange.append("a reset names keys") }
                contents = try await cache.snapshot()
            } else {
                if changes.updated.isEmpty && changes.removed.isEmpty { strange.append("nothing was sent") }
                contents.merge(changes.updated) { $1 }
                for key in changes.removed { contents[key] = nil }
            }
            if contents[last] != nil { break }
        }
        return (contents, strange)
    }

    private static func change(_ cache: Cache<Int, String>, _ step: Int, _ random: inout Seeded) throws {
        func key() -> Int { Int.random(in: 0..<50, using: &random) }
        let (one, two, text) = (key(), key(), "\(step)")
        switch Int.random(in: 0..<300, using: &random) {
        case 0..<80: cache[one] = text
        case 80..<100: try cache.setValue(text, forKey: one, maxAge: .seconds(0.5))
        case 100..<130: try cache.setValues((0..<8).map { (one + $0, text) })
        case 130..<165: try cache.remove(one)
        case 165..<180: try cache.removeValues(forKeys: [one, two, 500])
        case 180..<195: try cache.trim(toCount: 30)
        case 195..<210: try cache.removeExpired()
        case 210..<235: try cache.update(one) { $0 = $0 == nil ? text : nil }
        case 235..<260:
            try cache.manager.transaction { transaction in
                try transaction.setValue(text, forKey: one, in: cache)
                if one != two { try transaction.removeValue(forKey: two, in: cache) }
            }
        case 260..<270: try cache.removeAll { $0.key % 10 == one % 10 }
        case 270..<275: _ = try cache.removeValue(forKey: one)
        case 275..<280: _ = try cache.value(forKey: one) { _ in text }
        case 280..<290: try cache.trim(toSize: 100)
        case 290..<297: try cache.manager.maintain()
        case 297: try cache.removeAll()
        default: try cache.clear()
        }
    }
}
