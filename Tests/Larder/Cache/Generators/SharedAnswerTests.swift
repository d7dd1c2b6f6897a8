import Foundation
import Larder
import LarderTestSupport
import Testing

/// Handles of other ages, and of other managers, that share a flight.
struct SharedAnswerTests {
    private let place: StorePlace
    private let manager: CacheManager

    init() throws { (place, manager) = try StorePlace.opened() }

    private func cache(
        _ maxAge: MaxAge, in manager: CacheManager? = nil, codec: ValueCodec<String>
    ) throws -> Cache<Int, String> {
        try (manager ?? self.manager).cache(
            named: "shared", version: "1", maxAge: maxAge, options: CacheOptions(memory: .disabled), codec: codec)
    }

    /// A codec that waits when it decodes.
    private func codec(_ begun: LoadGate, _ gate: LoadGate) -> ValueCodec<String> {
        ValueCodec(identifier: "gated", encode: { Data($0.utf8) }) { data in
            begun.open()
            gate.block()
            return String(decoding: data, as: UTF8.self)
        }
    }

    enum Form: CaseIterable {
        case value, values, entry

        func make(_ text: String, _ cache: Cache<Int, String>) async throws -> String? {
            switch self {
            case .value: try await cache.value(forKey: 1) { _ in text }
            case .values: try await cache.values(forKeys: [1]) { _ in [1: text] }[1]
            case .entry: try await cache.entry(forKey: 1) { _, _ in .value(text) }.value
            }
        }
    }

    @Test(arguments: Form.allCases, Form.allCases)
    func `who joins gets nothing that is over by its own age`(leader: Form, follower: Form) async throws {
        let (begun, gate) = (LoadGate(), LoadGate())
        let long = try cache(.hours(1), codec: codec(begun, gate))
        let short = try cache(.seconds(1), codec: codec(begun, gate))
        long[1] = "old"
        place.time.advance(by: .seconds(2))
        let led = Task { try await leader.make("led", long) }
        try await begun.pass()
        let joined = Task { try await follower.make("fresh", short) }
        try await Waiting.until { short.waitingCallers == 2 }
        gate.open()
        #expect(try await led.value == "old")
        #expect(try await joined.value == "fresh")
        #expect(short[1] == "fresh")
    }

    @Test func `an entry that was found for another handle tells its end by the age of one's own`() async throws {
        let (begun, gate) = (LoadGate(), LoadGate())
        let long = try cache(.hours(1), codec: codec(begun, gate))
        let short = try cache(.minutes(1), codec: codec(begun, gate))
        long[1] = "old"
        let led = Task { try await long.entry(forKey: 1) { _, _ in .value("led") } }
        try await begun.pass()
        let joined = Task { try await short.entry(forKey: 1) { _, _ in .value("joined") } }
        try await Waiting.until { short.waitingCallers == 2 }
        gate.open()
        let now = place.time.now
        #expect(try await led.value.metadata.expiresAt == now.addingTimeInterval(3600))
        #expect(try await joined.value.metadata.expiresAt == now.addingTimeInterval(60))
    }

    @Test(arguments: Form.allCases, Form.allCases)
    func `the refusal of a manager that only reads is not that of who joined`(leader: Form, follower: Form) async throws
    {
        let (begun, gate) = (LoadGate(), LoadGate())
        let home = Locked<Cache<Int, String>?>(nil)
        let reader = try place.manager { [place] configuration in
            configuration.access = .readOnly
            configuration.clock = {
                // In the flight, while it looks whether the value is there.
                if home.value?.isGenerating == true {
                    begun.open()
                    gate.block()
                }
                return place.time.now
            }
        }
        let writing = try cache(.hours(1), codec: codec(LoadGate(), LoadGate()))
        let reading = try cache(.hours(1), in: reader, codec: codec(LoadGate(), LoadGate()))
        home.change { $0 = reading }
        defer { home.change { $0 = nil } }
        let led = Task { try await leader.make("never", reading) }
        try await begun.pass()
        let joined = Task { try await follower.make("made", writing) }
        try await Waiting.until { writing.waitingCallers == 2 }
        gate.open()
        #expect(try await joined.value == "made")
        let refusal = await #expect(throws: CacheError.self) { try await led.value }
        #expect(refusal?.code == .readOnly)
    }

    @Test func `what a closure throws is told, also where the old value is out of reach`() async throws {
        let cache: Cache<Int, String> = try await manager.cache(
            named: "shared", version: "1", maxAge: .seconds(1), options: CacheOptions(memory: .disabled))
        let value = cache.generator(GenerationPolicy(staleOnError: .seconds(600))) { [manager] _ in
            try await manager.close()
            throw Offline()
        }
        cache[1] = "old"
        place.time.advance(by: .seconds(2))
        await #expect(throws: Offline.self) { try await value(1) }
    }
}
