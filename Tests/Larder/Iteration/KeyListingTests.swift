import Foundation
import Larder
import LarderTestSupport
import Testing

/// Keys are listed from the index alone where no entry can be over, and that must never show.
struct KeyListingTests {
    private let folder: TemporaryFolder
    private let time = ManualClock()
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: time.configuration)
    }

    private func cache(_ age: MaxAge) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: "1", maxAge: age)
    }

    private func wait(_ seconds: Double) { time.set(time.now + seconds) }

    @Test func `an entry that is over between two passes is not listed`() throws {
        let cache = try cache(.seconds(60))
        for key in 1...3 {
            cache[key] = "\(key)"
            wait(10)
        }
        #expect(Array(cache.keys) == [1, 2, 3])
        wait(30.001)
        #expect(Array(cache.keys) == [2, 3])
        wait(20)
        #expect(Array(cache.keys) == [])
    }

    @Test func `keys are those that are contained, whatever was written`() throws {
        var random = Seeded()
        let cache = try cache(.seconds(60))
        for step in 0..<1500 {
            let key = Int.random(in: 0..<12, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40: cache[key] = "\(step)"
            case 40..<45:
                try cache.setValue("\(step)", forKey: key, maxAge: .seconds(Double.random(in: 1...90, using: &random)))
            case 45..<50: try cache.setValues((0..<4).map { (key + $0, "\(step)") })
            case 50..<60: cache[key] = nil
            case 60..<62: try cache.removeAll()
            case 62..<65: try cache.removeExpired()
            default: wait(Double.random(in: 0...12, using: &random))
            }
            let listed = Array(cache.keys)
            let contained = try (0..<15).filter { try cache.contains($0) }
            #expect(listed == contained, "seed \(random.seed), step \(step)")
            #expect(listed == cache.map(\.key), "seed \(random.seed), step \(step)")
        }
    }
}
