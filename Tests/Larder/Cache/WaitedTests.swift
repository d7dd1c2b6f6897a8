import Foundation
import Larder
import LarderTestSupport
import Testing

/// Sweeps that take long, and managers that are gone.
struct WaitedTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func cache(
        _ manager: CacheManager, _ maxAge: MaxAge = .seconds(1), _ options: CacheOptions = CacheOptions()
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: "1", maxAge: maxAge, options: options.steady)
    }

    /// Lets a thousand entries end, then a sweep take them, and does something when the first page of them has gone.
    private func sweep(
        _ maxAge: MaxAge, _ memory: MemoryLimits = MemoryLimits(), lastWrittenAfter delay: Duration,
        meanwhile: @escaping @Sendable (Cache<Int, String>) -> Void
    ) throws -> Cache<Int, String> {
        let home = Locked<Cache<Int, String>?>(nil)
        let told = Counter()
        let manager = try place.manager { configuration in
            configuration.log = { message in
                guard message.text.contains("was over"), told.value == 0, let cache = home.value else { return }
                told.increment()
                meanwhile(cache)
            }
        }
        let cache = try cache(manager, maxAge, CacheOptions(memory: memory))
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        try cache.setValues((0..<1000).map { ($0, "old") })
        place.time.advance(by: delay)
        try cache.setValue("kept", forKey: 1999)
        place.time.advance(by: .seconds(11) - delay)
        #expect(try cache.removeExpired() == 1000)
        #expect(told.value == 1)
        return cache
    }

    @Test func `a sweep that takes long takes nothing of the age of what is written meanwhile`() throws {
        let cache = try sweep(.seconds(10), lastWrittenAfter: .seconds(8)) { [place] cache in
            place.time.advance(by: .seconds(5))
            cache[1999] = "fresh"
        }
        place.time.advance(by: .milliseconds(9_900))
        #expect(cache[1999] == "fresh")
        place.time.advance(by: .milliseconds(200))
        #expect(cache[1999] == nil)
    }

    @Test(arguments: [MemoryLimits(), .disabled])
    func `a sweep that takes long takes nothing that is read meanwhile`(memory: MemoryLimits) throws {
        let age = MaxAge.seconds(10).sinceLastAccess
        let cache = try sweep(age, memory, lastWrittenAfter: .seconds(5)) { [place] cache in
            #expect(cache[1999] == "kept")
            place.time.advance(by: .seconds(5))
        }
        #expect(cache[1999] == "kept")
    }

    @Test func `a manager that is closed is told nothing more, and kept by nobody`() throws {
        let manager = try place.manager()
        let cache = try cache(manager)
        let told = Counter()
        weak var seen: Counter?
        do {
            let held = Counter()
            seen = held
            let other = try place.manager {
                $0.log = { _ in
                    held.increment(); told.increment()
                }
            }
            _ = try self.cache(other)
            try other.close()
        }
        #expect(seen == nil)
        cache[1] = "one"
        place.time.advance(by: .seconds(2))
        #expect(try cache.removeExpired() == 1)
        #expect(told.value == 0)
    }
}
