import Foundation
import Larder
import LarderTestSupport
import Testing

/// Loads that find a value on the disk while it changes.
struct PromotionTests {
    private let place: TemporaryStore
    private let hook = CodecHook()

    init() throws { place = try TemporaryStore(of: #fileID) }

    /// A load of one key on a thread, and one of many keys in a task.
    private static let forms: [LoadForm] = [.value, .valuesInTask]

    @Test(arguments: OvertakingChange.allCases, forms)
    func `a load that a change overtakes as it reads the disk leaves no old value in memory`(
        change: OvertakingChange, form: LoadForm
    ) async throws {
        let (cache, time) = (try hook.cache(in: place.manager()), place.clock)
        try await cache.setValue(1, forKey: 1, tags: ["t"])
        cache.memory.removeAll()
        hook.runBesideDecoding { try change.make(in: cache, time) }
        let begun = LoadGate()
        let found = try await form.load(-1, in: cache, begun: begun)
        #expect([1, change.value].contains(found))
        #expect(hook.isDone && !begun.isOpen)
        try expectServed(change.value, in: cache)
        #expect(!cache.isGenerating)
        try expectInvariants(cache)
    }

    @Test(arguments: [OvertakingChange.set, .remove, .removeAll], forms)
    func `a load that another store overtakes as it reads the disk leaves no old value in memory`(
        change: OvertakingChange, form: LoadForm
    ) async throws {
        let (cache, time) = (try hook.cache(in: place.manager()), place.clock)
        let other = try CodecHook().cache(in: place.manager())
        try await cache.setValue(1, forKey: 1, tags: ["t"])
        cache.memory.removeAll()
        hook.runBesideDecoding { try change.make(in: other, time) }
        let found = try await form.load(-1, in: cache)
        #expect([1, change.value].contains(found))
        #expect(hook.isDone)
        try expectServed(change.value, in: cache)
        try expectInvariants(cache)
    }
}
