import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// Work in the background of a manager that is suspended.
struct WhileResumedTests {
    private let manager: CacheManager
    private let cache: Cache<Int, String>
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
        manager = try place.manager()
        cache = try manager.cache(
            named: "texts", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled))
    }

    private func expectSuspended(_ isSuspended: Bool) async {
        do {
            _ = try await cache.value(forKey: 0)
            #expect(!isSuspended)
        } catch {
            #expect(isSuspended && error.code == .suspended)
        }
    }

    @Test func `a manager that is suspended is resumed for the work, whatever comes of it`() async throws {
        try await manager.suspend()
        let found = try await manager.whileResumed {
            try await cache.setValue("one", forKey: 1)
            return try await cache.value(forKey: 1)
        }
        #expect(found == "one")
        await expectSuspended(true)
        await #expect(throws: Offline.self) {
            try await manager.whileResumed {
                await expectSuspended(false)
                throw Offline()
            }
        }
        await expectSuspended(true)
        manager.resume()
        await expectSuspended(false)
    }

    @Test func `a manager that is not suspended stays so`() async throws {
        await manager.whileResumed { await expectSuspended(false) }
        await expectSuspended(false)
    }

    @Test func `the last of several ends suspends it`() async throws {
        try await manager.suspend()
        let (begun, gate) = (LoadGate(), LoadGate())
        let long = Task {
            try await manager.whileResumed {
                begun.open()
                try await gate.waitInTask()
                await expectSuspended(false)
            }
        }
        try await begun.waitInTask()
        await manager.whileResumed {
            await manager.whileResumed { await expectSuspended(false) }
            await expectSuspended(false)
        }
        await expectSuspended(false)
        gate.open()
        try await long.value
        await expectSuspended(true)
    }

    @Test func `a suspension in the meantime is put off, and a resumption calls it off`() async throws {
        try await manager.whileResumed {
            try await manager.suspend()
            await expectSuspended(false)
        }
        await expectSuspended(true)
        await manager.whileResumed { manager.resume() }
        await expectSuspended(false)
    }

    @Test func `scopes and suspensions at the same time leave no call without an answer`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<20 {
                        if task < 4 {
                            try await manager.whileResumed {
                                try await cache.setValue("\(round)", forKey: task)
                                let found = try await cache.value(forKey: task)
                                #expect(found == "\(round)")
                            }
                        } else {
                            try await manager.suspend()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        await expectSuspended(true)
        manager.resume()
        for task in 0..<4 { #expect(try await cache.value(forKey: task) == "19") }
    }

    @Test func `work on a store that is closed ends with its errors`() async throws {
        try await manager.suspend()
        try await manager.close()
        await #expect(throws: CacheError.self) {
            try await manager.whileResumed { try await cache.setValue("one", forKey: 1) }
        }
    }
}
