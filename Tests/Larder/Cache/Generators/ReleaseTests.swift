import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What is released because of a write, and on which thread: one that leads the writes must run no code of the user's.
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

    @Test func `keys that wait to be told are not released by the thread that leads the writes`() throws {
        let queue = try bench.manager.store().queue
        let (released, underLead) = (Counter(), Counter())
        let cache: Cache<HeavyKey, Int> = try bench.manager.cache(
            named: "heavy", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled).steady)
        let changes = cache.changes()
        for number in 0..<100 {
            try cache.setValue(
                number,
                forKey: HeavyKey(number) {
                    released.increment()
                    if queue.isLedHere { underLead.increment() }
                })
        }
        #expect(released.value == 0)
        try cache.removeAll()
        #expect(released.value == 100 && underLead.value == 0)
        withExtendedLifetime(changes) {}
    }

    @Test func `the key of a load is released under no lock`() async throws {
        let loads = Loads<HeavyKey, String>(name: "loaded")
        let (gate, released) = (LoadGate(), Counter())
        let load = Task {
            // A key that is released under the lock waits for it forever here.
            let key = HeavyKey(1) { if loads.waitingCount >= 0 { released.increment() } }
            return try await loads.values(forKeys: [key]) {
                LoadPlan { _ in
                    [:]
                } load: { _, _ in
                    try await gate.pass()
                    throw Offline()
                }
            }
        }
        try await Waiting.until { loads.waitingCount == 1 }
        withExtendedLifetime(loads.noteWrite(HeavyKey(1))) {}
        #expect(released.value == 0)
        gate.open()
        await #expect(throws: Offline.self) { try await load.value }
        try await Waiting.until { released.value == 1 }
    }
}
