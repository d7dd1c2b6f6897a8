internal import LarderLocks
public import LarderSQLite

/// A value in memory, with what a hit needs to know of its row.
@usableFromInline
struct CachedValue<Value: Sendable>: Sendable {
    @usableFromInline var value: Value
    /// The end, doubled, and 1 more if each access moves it.
    @usableFromInline private(set) var deadline: Int64
    /// The epoch in which the row was known to be this one.
    @usableFromInline var epoch: UInt32

    @inlinable
    init(_ value: Value, end: Int64, epoch: UInt32, slides: Bool) {
        (self.value, self.epoch, deadline) = (value, epoch, Self.deadline(end, slides))
    }

    /// The deadline of a copy that never expires.
    @inlinable static var unlimited: Int64 { .max - 1 }

    @inlinable
    static func deadline(_ end: Int64, _ slides: Bool) -> Int64 {
        min(max(end, .min >> 1), .max >> 1) << 1 | (slides ? 1 : 0)
    }

    /// The last moment at which it is served; `.max` if it never expires.
    @inlinable var end: Int64 { deadline | 1 == .max ? .max : deadline >> 1 }

    /// A Boolean value that indicates whether each access moves the end.
    @inlinable var slides: Bool { deadline & 1 != 0 }

    @inlinable
    mutating func setEnd(_ end: Int64, slides: Bool) { deadline = Self.deadline(end, slides) }

    /// Moves the end of a copy that slides to a later moment.
    @inlinable
    mutating func slide(to end: Int64) { if slides { setEnd(max(self.end, end), slides: true) } }
}

/// A value that is written or was read, for memory.
@usableFromInline
struct NewCopy<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let hash: UInt64
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    /// The bytes of the key and the value outside the table.
    @usableFromInline let bytes: Int

    @inlinable
    init(key: Key, hash: UInt64, value: Value, cost: Int, bytes: Int) {
        (self.key, self.hash, self.value, self.cost, self.bytes) = (key, hash, value, cost, bytes)
    }
}

/// What a look-up gets, to be shown when it offers the copy that it has read.
@usableFromInline
struct ReadTicket: Sendable {
    /// The number of changes of keys with the same remainder of the hash.
    @usableFromInline let changeCount: UInt32
    @usableFromInline let epoch: UInt32

    @inlinable
    init(changeCount: UInt32, epoch: UInt32) { (self.changeCount, self.epoch) = (changeCount, epoch) }

    /// A ticket with which nothing is kept.
    @inlinable static var refused: ReadTicket { ReadTicket(changeCount: 0, epoch: CommitWatch.noEpoch) }
}
