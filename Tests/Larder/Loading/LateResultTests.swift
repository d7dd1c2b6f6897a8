import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values that are loaded while their key is written or removed.
struct LateResultTests {
    private let bench: Workbench
    private let begun = LoadGate()
    private let gate = LoadGate()

    init() throws { bench = try Workbench() }

    enum Change: CaseIterable {
        case none, trim, otherKey
        case set, setInTask, setMany, setManyInTask, update, transaction
        case setNil, remove, removeInTask, removeValue, removeValueInTask, removeMany, removeManyInTask, updateToNil
        case removalInTransaction, clear, clearInTask, clearWithProgress, clearWithProgressInTask
        case clearDisk, clearStore

        /// The value of the key in the end.
        var left: String? {
            switch self {
            case .none, .trim, .otherKey: "late"
            case .set, .setInTask, .setMany, .setManyInTask, .update, .transaction: "newer"
            default: nil
            }
        }

        func make(_ cache: Cache<Int, String>, _ bench: Workbench) async throws {
            switch self {
            case .setInTask: try await cache.setValue("newer", forKey: 1)
            case .setManyInTask: try await cache.setValues([1: "newer", 2: "other"])
            case .removeInTask: try await cache.remove(1)
            case .removeValueInTask: try await cache.removeValue(forKey: 1)
            case .removeManyInTask: try await cache.removeValues(forKeys: [2, 1])
            case .clearInTask: try await cache.removeAll()
            case .clearWithProgressInTask: try await cache.clear()
            case .trim: try await cache.trim(toCount: 0)
            default: try makeAtOnce(cache, bench)
            }
        }

        private func makeAtOnce(_ cache: Cache<Int, String>, _ bench: Workbench) throws {
            switch self {
            case .none: break
            case .otherKey: cache[2] = "other"
            case .set: cache[1] = "newer"
            case .setMany: try cache.setValues([1: "newer", 2: "other"])
            case .update: try cache.update(1) { $0 = "newer" }
            case .transaction: try bench.manager.transaction { try $0.setValue("newer", forKey: 1, in: cache) }
            case .setNil: cache[1] = nil
            case .remove: try cache.remove(1)
            case .removeValue: try cache.removeValue(forKey: 1)
            case .removeMany: try cache.removeValues(forKeys: [2, 1])
            case .updateToNil: try cache.update(1) { $0 = nil }
            case .removalInTransaction: try bench.manager.transaction { try $0.removeValue(forKey: 1, in: cache) }
            case .clear: try cache.removeAll()
            case .clearWithProgress: try cache.clear()
            case .clearDisk: try cache.disk.removeAll()
            case .clearStore: try bench.manager.removeAll()
            default: Issue.record("\(self) is made elsewhere")
            }
        }
    }

    @Test(arguments: Change.allCases, LoadForm.allCases)
    func `a late result does not overwrite a change of its key`(change: Change, form: LoadForm) async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled))
        async let loaded = form.load("late", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        try await change.make(cache, bench)
        gate.open()
        #expect(try await loaded == "late")
        #expect(try await cache.value(forKey: 1) == change.left)
        #expect(!cache.isGenerating)
    }

    @Test(arguments: [Change.set, .remove, .clear], LoadForm.allCases)
    func `a caller that comes after a change does not join the load before it`(
        change: Change, form: LoadForm
    ) async throws {
        let cache = try bench.numbers()
        async let late = form.load("late", in: cache, begun: begun, gate: gate)
        defer { gate.open() }
        try await begun.waitInTask()
        try await change.make(cache, bench)
        let value = change.left ?? "next"
        #expect(try await form.load("next", in: cache) == value)
        #expect(cache[1] == value)
        gate.open()
        #expect(try await late == "late")
        #expect(cache[1] == value)
        try expectInvariants(cache)
    }

    /// A change that does not count: the entry has left by its age or a limit.
    private static let leavings: [OvertakingChange] = [.trim, .limit, .maintenance, .removeExpired]

    @Test(arguments: OvertakingChange.allCases)
    func `a refresh does not overwrite a change of its entry`(change: OvertakingChange) async throws {
        let cache = try CodecHook().cache(in: bench.manager)
        let (time, begun, gate) = (bench.time, begun, gate)
        defer { gate.open() }
        try await cache.setValue(1, forKey: 1, tags: ["t"])
        let value = cache.generator(GenerationPolicy(refreshAhead: 0)) { _ in
            begun.open()
            try await gate.waitInTask()
            return 9
        }
        #expect(try await value(1) == 1)
        try await begun.waitInTask()
        try await onThread { try change.make(in: cache, time) }
        gate.open()
        try await Waiting.until { !cache.isGenerating }
        #expect(cache[1] == (Self.leavings.contains(change) ? 9 : change.value))
        try expectInvariants(cache)
    }

    @Test(arguments: LoadForm.asynchronous, [true, false])
    func `a load that begins before a change is committed does not undo it`(form: LoadForm, isRemoval: Bool)
        async throws
    {
        let cache = try bench.numbers()
        let (begun, gate) = (begun, gate)
        defer { gate.open() }
        let late = try await onThread { () throws -> Task<String?, any Error> in
            try cache.manager.transaction { transaction throws in
                if isRemoval {
                    try transaction.removeValue(forKey: 1, in: cache)
                } else {
                    try transaction.setValue("newer", forKey: 1, in: cache)
                }
                let late = Task { try await form.load("late", in: cache, begun: begun, gate: gate) }
                try begun.wait()
                return late
            }
        }
        gate.open()
        #expect(try await late.value == "late")
        #expect(cache[1] == (isRemoval ? nil : "newer"))
    }

    @Test(arguments: [
        Change.setInTask, .setManyInTask, .removeInTask, .removeManyInTask, .removeValueInTask, .clearInTask,
    ])
    func `a late result does not undo a change that is in front of it in one transaction`(change: Change) async throws {
        let cache = try bench.numbers()
        let (bench, begun, gate, probe) = (bench, begun, gate, StoreProbe(bench.manager))
        let (holdsWriter, writerGoesOn) = (LoadGate(), LoadGate())
        defer { for gate in [gate, writerGoesOn] { gate.open() } }
        let late = Task {
            try await cache.value(forKey: 1) { _ in
                begun.open()
                try await gate.waitInTask()
                return "late"
            }
        }
        try await begun.waitInTask()
        let body = SideThread {
            try bench.manager.transaction { _ in
                holdsWriter.open()
                try writerGoesOn.wait()
            }
        }
        try await holdsWriter.waitInTask()
        let write = Task { try await change.make(cache, bench) }
        try await Waiting.until { try probe.waitingCount == 1 }
        gate.open()
        try await Waiting.until { try probe.waitingCount == 2 }
        writerGoesOn.open()
        try await onThread { try body.value() }
        try await write.value
        #expect(try await late.value == "late")
        #expect(cache[1] == change.left)
    }
}
