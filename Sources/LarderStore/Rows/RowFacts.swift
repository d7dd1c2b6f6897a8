public import Foundation

/// A row without its payload.
@usableFromInline
package struct RowFacts: Sendable {
    @usableFromInline package let key: StoredKey
    @usableFromInline package let id: Int64
    @usableFromInline package let revision: Int64
    package let writtenAt: Int64
    /// The end of the entry alone; nil if the rule of the cache holds, `.max` if the entry has no end.
    package let expiresAt: Int64?
    package let payloadSize: Int64
    package let file: String?
    @usableFromInline package let meta: RowMeta
    /// The last moment at which the entry is served; `.max` if it never expires.
    @usableFromInline package private(set) var end: Int64
    /// The milliseconds by which each access moves the end; nil if none does.
    @usableFromInline package let slidingAge: Int64?
    /// The moment of the last access, if it was looked up.
    package private(set) var accessedAt: Int64

    /// - Parameter rule: The rule of the cache.
    init(
        key: StoredKey, id: Int64, revision: Int64, writtenAt: Int64, expiresAt: Int64?, payloadSize: Int64,
        file: String?, meta: RowMeta, rule: AgeRule
    ) {
        (self.key, self.id, self.revision, self.writtenAt) = (key, id, revision, writtenAt)
        (self.expiresAt, self.payloadSize, self.file, self.meta) = (expiresAt, payloadSize, file, meta)
        accessedAt = writtenAt
        let rule = rule.of(expiresAt: expiresAt, slidingAge: meta.slidingAge)
        end = rule.end(writtenAt: writtenAt, accessedAt: writtenAt)
        slidingAge = rule.slidingAge
    }

    /// Notes an access, which moves the end of an entry that slides.
    @usableFromInline
    package mutating func note(accessAt moment: Int64) {
        accessedAt = max(accessedAt, moment)
        guard let slidingAge else { return }
        end = max(end, AgeRule.sinceAccess(slidingAge).end(writtenAt: writtenAt, accessedAt: moment))
    }

    /// Returns the own end of the entry if it is written again: an age restarts, and a fixed end stays.
    package func ownEnd(ifWrittenAt moment: Int64) -> Int64? {
        guard let expiresAt, expiresAt != .max, !meta.hasFixedEnd else { return expiresAt }
        return moment.addingSaturated(expiresAt.subtractingSaturated(writtenAt))
    }

    /// Returns the facts as they are once the age of the entry begins again.
    ///
    /// - Parameter rule: The rule of the cache.
    package func renewed(at now: Int64, _ rule: AgeRule) -> RowFacts {
        RowFacts(
            key: key, id: id, revision: revision, writtenAt: now, expiresAt: ownEnd(ifWrittenAt: now),
            payloadSize: payloadSize, file: file, meta: meta, rule: rule)
    }

    /// The bytes that count against limits: payload and extended data.
    package var size: Int64 { payloadSize + Int64(meta.extendedData?.count ?? 0) }
}

/// A row with its payload.
@usableFromInline
package struct StoredRow: Sendable {
    @usableFromInline package internal(set) var facts: RowFacts
    @usableFromInline package let payload: Data
    /// What the hash of the file has to be; nil if the payload was in the row.
    var fileChecksum: Int64?
    /// A Boolean value that indicates whether a payload in the row fits the checksum.
    var isSound = true
}

/// The totals of a cache, and what is known of the ends of its rows.
struct RowCount: Sendable {
    var totals = Totals()
    /// A moment before which no row expires.
    var firstEnd = Int64.max

    mutating func note(end: Int64) { firstEnd = min(firstEnd, end) }
}

/// A number of entries and their bytes.
package struct Totals: Hashable, Sendable {
    package var count: Int64 = 0
    package var size: Int64 = 0

    package init(count: Int64 = 0, size: Int64 = 0) { (self.count, self.size) = (count, size) }

    static func += (a: inout Totals, b: Totals) {
        a.count += b.count
        a.size += b.size
    }
}
