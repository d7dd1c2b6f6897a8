import Dispatch
import Larder
import LarderTestSupport
import Testing

/// That tasks without number do not hold encoded values without number.
struct BackPressureTests {
    @Test func `tasks that find no room wait before they encode, and all of them are written`() async throws {
        let place = try StorePlace()
        let manager = try place.manager()
        let cache: Cache<Int, Counted> = try await manager.cache(named: "numbers", version: "1", maxAge: .unlimited)
        let queue = try manager.store().queue
        let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let transaction = SideThread {
            try manager.transaction { _ in
                begun.signal()
                end.wait()
            }
        }
        begun.wait()

        let (room, total) = (2 * WriteQueue.batchLimit, 3000)
        let written = Counter()
        for number in 0..<total {
            Task.detached {
                do {
                    try await cache.setValue(Counted(number: number), forKey: number)
                    written.increment()
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await Waiting.until { queue.waitingCount == room && queue.room.waitingCount == total - room }
        #expect(Counted.encoded.value == room)

        end.signal()
        try transaction.value()
        try await Waiting.until { written.value == total }
        #expect(try cache.count == total)
        #expect(Counted.encoded.value == total)
        #expect(queue.room.waitingCount == 0)
        try await manager.close()
    }
}

/// A value that counts how often any was encoded; of this one test.
private struct Counted: Codable, Sendable {
    static let encoded = Counter()

    let number: Int

    init(number: Int) { self.number = number }

    init(from decoder: any Decoder) throws {
        number = try decoder.singleValueContainer().decode(Int.self)
    }

    func encode(to encoder: any Encoder) throws {
        Self.encoded.increment()
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}
