internal import LarderLocks

/// What is left to do after a change once no lock is held: objects to release, since the end of a value or a key may run code
/// of the program's, and memory tiers that shall keep again what reads find.
@usableFromInline
final class Leftovers: Sendable {
    private struct State {
        var objects: [any Sendable] = []
        var tiers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())
    private let tooCostly = Atomic(false)

    @usableFromInline
    init() {}

    /// A Boolean value that indicates whether memory cannot keep a written value, whatever is evicted.
    @usableFromInline var isTooCostly: Bool { tooCostly.load(ordering: .relaxed) }

    @usableFromInline
    func noteTooCostly() { tooCostly.store(true, ordering: .relaxed) }

    @usableFromInline
    func add(_ object: any Sendable) { state.withLock { $0.objects.append(object) } }

    /// Begins a change of several keys: until ``end()`` a memory tier keeps nothing that reads find.
    @usableFromInline
    func begin<Key, Value>(in tier: MemoryCopies<Key, Value>) {
        let end = { @Sendable in tier.endChange() }
        let isNew = state.withLock { $0.tiers.updateValue(end, forKey: ObjectIdentifier(tier)) == nil }
        if isNew { tier.beginChange() }
    }

    @usableFromInline
    func end() { for end in state.withLock({ Array($0.tiers.values) }) { end() } }
}
