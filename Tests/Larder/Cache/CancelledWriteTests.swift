import Dispatch
import Foundation
import Larder
import LarderTestSupport
import Testing

/// Writes of tasks that are cancelled while they wait for a long transaction.
struct CancelledWriteTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    enum Write: CaseIterable {
        case set, setLarge, setNil, setValues, remove, removeValue, removeValues, touch, pin, extendedData, removeAll
        case update, transaction

        /// A Boolean value that indicates whether it waits in the queue of requests, where it can be seen.
        var isRequest: Bool { self != .update && self != .transaction }

        func run(_ cache: Cache<Int, String>) async throws {
            switch self {
            case .set: try await cache.setValue("new", forKey: 1)
            case .setLarge: try await cache.setValue(String(repeating: "new", count: 50_000), forKey: 1)
            case .setNil: try await cache.setValue(nil, forKey: 1)
            case .setValues: try await cache.setValues([1: "new", 2: "new"])
            case .remove: try await cache.remove(1)
            case .removeValue: try await cache.removeValue(forKey: 1)
            case .removeValues: try await cache.removeValues(forKeys: [1, 2])
            case .touch: try await cache.touch(1, maxAge: .seconds(1))
            case .pin: try await cache.setPinned(true, forKey: 1)
            case .extendedData: try await cache.setExtendedData(Data([1]), forKey: 1)
            case .removeAll: try await cache.removeAll()
            case .update: try await cache.update(1) { $0 = "new" }
            case .transaction:
                try await cache.manager.transaction { try $0.setValue("new", forKey: 1, in: cache) }
            }
        }
    }

    @Test(arguments: Write.allCases)
    func `a write that is cancelled while it waits throws, and changes nothing`(write: Write) async throws {
        // Not on a thread of the pool, which the task needs.
        try await onThread { try check(write) }
    }

    private func check(_ write: Write) throws {
        let manager = try place.manager()
        let cache: Cache<Int, String> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        try cache.setValues([1: "old", 2: "old"])
        let before = try cache.metadata(forKey: 1)
        let (isHeld, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let holder = SideThread {
            try manager.transaction { _ in
                isHeld.signal()
                release.wait()
            }
        }
        defer { release.signal() }
        isHeld.wait()
        let task = Task { try await write.run(cache) }
        if write.isRequest { try Waiting.until { try StoreProbe(manager).waitingCount == 1 } }
        task.cancel()
        // A body throws at its turn. A request throws before the transaction ends.
        if !write.isRequest { release.signal() }
        #expect(throws: CancellationError.self) { try waiting { try await task.value } }
        if write.isRequest { release.signal() }
        try holder.value()
        #expect(try cache.values(forKeys: [1, 2]) == [1: "old", 2: "old"])
        #expect(try cache.metadata(forKey: 1) == before && cache.extendedData(forKey: 1) == nil)
        #expect(try StoreProbe(manager).fileProblems(isSwept: true) == [])
        try expectInvariants(cache)
    }
}
