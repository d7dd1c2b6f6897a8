internal import LarderStore
internal import Synchronization

/// A value in memory, with what a hit needs to know of its row.
@usableFromInline
struct MemoryCopy<Value: Sendable>: Sendable {
    @usableFromInline var value: Value
    /// The last moment at which it is served; `.max` if it never expires.
    @usableFromInline var end: Int64
    /// The epoch in which the row was known to be this one.
    @usableFromInline var epoch: UInt32
    /// A Boolean value that indicates whether each access moves the end.
    @usableFromInline var slides: Bool

    @inlinable
    init(_ value: Value, end: Int64, epoch: UInt32, slides: Bool) {
        (self.value, self.end, self.epoch, self.slides) = (value, end, epoch, slides)
    }
}

/// The row of a copy.
@usableFromInline
struct CopiedRow: Sendable {
    @usableFromInline let id: Int64
    @usableFromInline let revision: Int64
    @usableFromInline let end: Int64
    @usableFromInline let slidingAge: Int64?
    /// The milliseconds from the write or the last access to the end; 0 if there is no end.
    let age: Int64

    init(id: Int64, revision: Int64, end: Int64, slidingAge: Int64?, writtenAt: Int64) {
        (self.id, self.revision, self.end, self.slidingAge) = (id, revision, end, slidingAge)
        age = slidingAge ?? (end == .max ? 0 : max(0, end.subtractingSaturated(writtenAt)))
    }

    init(_ facts: RowFacts) {
        self.init(
            id: facts.id, revision: facts.revision, end: facts.end, slidingAge: facts.slidingAge,
            writtenAt: facts.writtenAt)
    }

    /// The row that a request has written; nil if it was removed.
    init?(_ row: Outcome.RowChange) {
        guard let revision = row.revision else { return nil }
        self.init(
            id: row.id, revision: revision, end: row.end, slidingAge: row.slidingAge, writtenAt: row.writtenAt)
    }
}

/// A value that is being written, for memory.
struct WrittenCopy<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    let key: Key
    let hash: UInt64
    let value: Value
    let cost: Int
    /// The bytes of the key and the value outside the table.
    let bytes: Int
}

/// What a look-up that found nothing has to show when it offers a copy.
@usableFromInline
struct OfferTicket: Sendable {
    /// The number of changes of keys with the same remainder of the hash.
    let stamp: UInt32
    let epoch: UInt32
}

/// Objects that are released once no lock is held: the end of a value or a key may run code of the program's.
final class Leftovers: Sendable {
    private let objects = Mutex<[any Sendable]>([])
    private let tooCostly = Atomic(false)

    /// A Boolean value that indicates whether memory cannot keep a written value, whatever is evicted.
    var isTooCostly: Bool { tooCostly.load(ordering: .relaxed) }

    func noteTooCostly() { tooCostly.store(true, ordering: .relaxed) }

    func add(_ object: any Sendable) { objects.withLock { $0.append(object) } }
}
