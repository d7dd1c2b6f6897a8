import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values that are made while somebody writes their key.
struct LateResultTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    enum Form: CaseIterable {
        case value, valueInTask, values, valuesInTask, entry

        /// The value that is made for key 1 once the gate is open.
        func make(_ cache: Cache<Int, String>, _ begun: LoadGate, _ gate: LoadGate) async throws -> String? {
            let wait: @Sendable () -> Void = {
                begun.open()
                gate.block()
            }
            let waitInTask: @Sendable () async throws -> Void = {
                begun.open()
                try await gate.pass()
            }
            switch self {
            case .value:
                return try await onThread {
                    try cache.value(forKey: 1) { _ in
                        wait()
                        return "late"
                    }
                }
            case .values:
                return try await onThread {
                    try cache.values(forKeys: [1]) { _ in
                        wait()
                        return [1: "late"]
                    }
                }[1]
            case .valueInTask:
                return try await cache.value(forKey: 1) { _ in
                    try await waitInTask()
                    return "late"
                }
            case .valuesInTask:
                return try await cache.values(forKeys: [1]) { _ in
                    try await waitInTask()
                    return [1: "late"]
                }[1]
            case .entry:
                return try await cache.entry(forKey: 1) { _, _ in
                    try await waitInTask()
                    return .value("late")
                }.value
            }
        }
    }

    enum Change: CaseIterable {
        case none, trim, otherKey
        case set, setInTask, setMany, setManyInTask, update, transaction
        case setNil, remove, removeInTask, removeValue, removeValueInTask, removeMany, removeManyInTask, updateToNil
        case removalInTransaction, clear, clearInTask, clearWithProgress, clearWithProgressInTask
        case clearDisk, clearStore

        /// What the key has in the end.
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

    // case 264
    @Test(arguments: Change.allCases, Form.allCases)
    func `a late result does not overwrite what happened meanwhile`(change: Change, form: Form) async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled))
        let (begun, gate) = (LoadGate(), LoadGate())
        defer { gate.open() }
        async let made = form.make(cache, begun, gate)
        try await begun.pass()
        try await change.make(cache, bench)
        gate.open()
        #expect(try await made == "late")
        #expect(try await cache.value(forKey: 1) == change.left)
        #expect(!cache.isGenerating)
    }
}
