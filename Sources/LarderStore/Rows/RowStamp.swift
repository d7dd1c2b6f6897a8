/// What memory keeps of a row: which one it is, and how long it is served.
@usableFromInline
package struct RowStamp: Sendable {
    @usableFromInline package let id: Int64
    @usableFromInline package let revision: Int64
    /// The last moment at which the entry is served, if it is not accessed; `.max` if it never expires.
    @usableFromInline package let end: Int64
    /// The milliseconds by which each access moves the end; nil if none does.
    @usableFromInline package let slidingAge: Int64?
    @usableFromInline package let writtenAt: Int64

    @usableFromInline
    package init(id: Int64, revision: Int64, end: Int64, slidingAge: Int64?, writtenAt: Int64) {
        (self.id, self.revision, self.end) = (id, revision, end)
        (self.slidingAge, self.writtenAt) = (slidingAge, writtenAt)
    }

    /// The stamp of a row with this rule, its own or that of its cache.
    init(id: Int64, revision: Int64, _ rule: AgeRule, writtenAt: Int64, accessedAt: Int64) {
        self.init(
            id: id, revision: revision, end: rule.end(writtenAt: writtenAt, accessedAt: accessedAt),
            slidingAge: rule.slidingAge, writtenAt: writtenAt)
    }

    /// The milliseconds from the write or the last access to the end; 0 if there is no end.
    @inlinable package var age: Int64 {
        slidingAge ?? (end == .max ? 0 : max(0, end.subtractingSaturated(writtenAt)))
    }
}

extension EntryHeader {
    @usableFromInline package var stamp: RowStamp {
        RowStamp(id: id, revision: revision, end: end, slidingAge: slidingAge, writtenAt: writtenAt)
    }
}
