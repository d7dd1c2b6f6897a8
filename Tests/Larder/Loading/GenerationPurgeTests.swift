import Foundation
import Larder
import LarderTestSupport
import Testing

/// Loads whose cache is purged while they run.
struct GenerationPurgeTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    private func cache(_ version: CacheVersion = "1") throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: version, maxAge: .hours(1), options: CacheOptions().steady)
    }

    enum Purge: CaseIterable { case version, removal }

    private func make(_ purge: Purge) throws {
        switch purge {
        case .version: #expect(try cache("2").isEmpty)
        case .removal: try manager.removeCache(named: "a")
        }
    }

    @Test(arguments: Purge.allCases, LoadForm.allCases)
    func `a load of a purged cache gives its value to its callers, and stores and reports nothing`(
        purge: Purge, form: LoadForm
    ) async throws {
        let cache = try cache()
        let events = manager.events
        let (begun, gate) = (LoadGate(), LoadGate())
        async let loaded = form.load("late", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        try make(purge)
        gate.open()
        #expect(try await loaded == "late")
        #expect(!cache.isGenerating && cache[1] == nil)
        let error = await #expect(throws: CacheError.self) { try await form.load("next", in: cache) }
        #expect(error?.code == .superseded)
        #expect(try self.cache("2").isEmpty)
        try await manager.close()
        for await event in events { #expect(event.kind != .writeFailed, "\(event)") }
    }
}
