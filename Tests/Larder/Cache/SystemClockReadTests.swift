import Foundation
import Larder
import LarderTestSupport
import Testing

/// Reads by the system's own clock, whose hits look at a coarse one.
struct SystemClockReadTests {
    private let folder: TemporaryFolder
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        var configuration = CacheManager.Configuration()
        configuration.maintenanceInterval = nil
        manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
    }

    enum Read: CaseIterable {
        case value, entry, contains, keys, count, many

        func isServed(_ cache: Cache<Int, String>) throws -> Bool {
            switch self {
            case .value: cache[1] != nil
            case .entry: try cache.entry(forKey: 1) != nil
            case .contains: try cache.contains(1)
            case .keys: Array(cache.keys) == [1]
            case .count: try cache.count == 1
            case .many: try cache.values(forKeys: [1])[1] != nil
            }
        }
    }

    // case 141, 142
    @Test(arguments: Read.allCases, [false, true])
    func `a value is served for its age, to ten milliseconds`(read: Read, hasMemory: Bool) throws {
        let (age, exactness): (Int64, Int64) = (60, 10)
        let cache: Cache<Int, String> = try manager.cache(
            named: "a", version: "1", maxAge: .duration(.milliseconds(age)),
            options: CacheOptions(memory: hasMemory ? .init() : .disabled).steady)
        cache[1] = "one"
        let entry = try #require(try cache.entry(forKey: 1, allowingExpired: true))
        let end = SystemClock.milliseconds(of: entry.metadata.writtenAt) + age
        while true {
            let earlier = SystemClock.now()
            let isServed = try read.isServed(cache)
            let later = SystemClock.now()
            if isServed, earlier > end + exactness { Issue.record("served \(earlier - end) ms late at the least") }
            if !isServed, later <= end - exactness { Issue.record("missed \(end - later) ms early at the least") }
            if !isServed || earlier > end + exactness { break }
        }
    }
}
