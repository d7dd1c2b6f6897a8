import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

/// What is released because of a write: no lock may be held meanwhile.
struct ReleaseTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    /// A key whose release runs code.
    private final class HeavyKey: Codable, Hashable, Sendable {
        let number: Int
        private let onRelease: @Sendable () -> Void

        init(_ number: Int, onRelease: @escaping @Sendable () -> Void = {}) {
            self.number = number
            self.onRelease = onRelease
        }

        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            onRelease = {}
        }

        deinit { onRelease() }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }

        static func == (left: HeavyKey, right: HeavyKey) -> Bool { left.number == right.number }

        func hash(into hasher: inout Hasher) { hasher.combine(number) }
    }

    @Test func `keys that wait to be told are released where the store may be written`() throws {
        let numbers = try bench.numbers()
        let (released, refused) = (Counter(), Counter())
        let cache: Cache<HeavyKey, Int> = try bench.manager.cache(
            named: "heavy", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled).steady)
        let changes = cache.changes()
        for number in 0..<100 {
            try cache.setValue(
                number,
                forKey: HeavyKey(number) {
                    released.increment()
                    do { try numbers.setValue("released", forKey: number) } catch { refused.increment() }
                })
        }
        #expect(released.value == 0)
        try cache.removeAll()
        #expect(released.value == 100 && refused.value == 0)
        #expect(try numbers.count == 100)
        withExtendedLifetime(changes) {}
    }
}
