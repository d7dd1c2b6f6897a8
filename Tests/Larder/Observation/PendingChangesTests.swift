import Larder
import Testing

struct PendingChangesTests {
    private var log = Log()

    /// A log whose calls are short.
    private struct Log {
        private var log = PendingChanges<Int>()

        var isEmpty: Bool { log.isEmpty }
        var count: Int { log.count }
        mutating func updated(_ key: Int) -> Int { log.note(key, .updated)?.count ?? 0 }
        mutating func removed(_ key: Int) -> Int { log.note(key, .removed)?.count ?? 0 }
        mutating func reset() -> Int { log.reset().count }
        mutating func noteForeign() { log.noteForeign() }
        mutating func take() -> PendingChanges<Int>.Batch? { log.take() }
    }

    private mutating func expect(
        updated: Set<Int> = [], removed: Set<Int> = [], isReset: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let batch = log.take()
        #expect(batch?.updated == updated, sourceLocation: sourceLocation)
        #expect(batch?.removed == removed, sourceLocation: sourceLocation)
        #expect(batch?.isReset == isReset, sourceLocation: sourceLocation)
        #expect(log.take() == nil && log.isEmpty, sourceLocation: sourceLocation)
    }

    @Test mutating func `what was removed last is removed`() {
        _ = (log.removed(1), log.updated(1), log.removed(1))
        _ = (log.updated(2), log.removed(2))
        expect(removed: [1, 2])
    }

    @Test mutating func `what was set last is updated`() {
        _ = (log.removed(1), log.updated(1))
        _ = (log.updated(2), log.updated(2))
        expect(updated: [1, 2])
    }

    @Test mutating func `a batch holds each key once, on one side`() {
        for key in 0..<1000 {
            _ = log.updated(key)
            if key % 3 == 0 { _ = log.removed(key) }
            if key % 6 == 0 { _ = log.updated(key) }
        }
        let batch = log.take()
        #expect(batch?.updated.isDisjoint(with: batch?.removed ?? []) == true)
        #expect(batch?.removed == Set((0..<1000).filter { $0 % 3 == 0 && $0 % 6 != 0 }))
    }

    @Test mutating func `what other processes may have changed is noted next to the keys`() {
        _ = log.updated(1)
        log.noteForeign()
        #expect(log.take().map { $0.isForeign && !$0.isReset && $0.updated == [1] } == true)
        log.noteForeign()
        #expect(!log.isEmpty && log.take()?.isForeign == true && log.take() == nil)
    }

    @Test mutating func `without a change there is nothing to take`() {
        #expect(log.take() == nil)
    }

    @Test mutating func `a reset says nothing of keys, whatever came before and after`() {
        _ = (log.updated(1), log.removed(2))
        #expect(log.reset() == 2)
        #expect(log.updated(3) + log.removed(4) + log.reset() == 0)
        expect(isReset: true)
        _ = log.updated(5)
        expect(updated: [5])
    }

    @Test mutating func `ten thousand keys are listed, and one more is a reset`() {
        for key in 0..<10_000 { #expect(log.updated(key) == 0) }
        #expect(log.updated(3) == 0 && log.count == 10_000)
        #expect(log.removed(10_000) == 10_001)
        #expect(log.count == 0)
        expect(isReset: true)
    }
}
