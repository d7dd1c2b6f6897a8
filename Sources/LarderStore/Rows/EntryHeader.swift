public import Foundation

/// A row without its payload.
@usableFromInline
package struct EntryHeader: Sendable {
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
        end = rule.end(writtenAt: writtenAt, accessedAt: writtenAt, id: id)
        slidingAge = rule.slidingAge
    }

    /// Notes an access, which moves the end of an entry that slides.
    @usableFromInline
    package mutating func note(accessAt moment: Int64) {
        accessedAt = max(accessedAt, moment)
        guard let slidingAge else { return }
        let rule = AgeRule.sinceAccess(slidingAge)
        end = max(end, rule.end(writtenAt: writtenAt, accessedAt: moment, id: id))
    }

    /// Returns the own end of the entry if it is written again: an age restarts, and a fixed end stays.
    package func ownEnd(ifWrittenAt moment: Int64) -> Int64? {
        guard let expiresAt, expiresAt != .max, !meta.hasFixedEnd else { return expiresAt }
        return moment.addingSaturated(expiresAt.subtractingSaturated(writtenAt))
    }

    /// Returns the header as they are once the age of the entry begins again.
    ///
    /// - Parameter rule: The rule of the cache.
    package func renewed(at now: Int64, _ rule: AgeRule) -> EntryHeader {
        EntryHeader(
            key: key, id: id, revision: revision, writtenAt: now, expiresAt: ownEnd(ifWrittenAt: now),
            payloadSize: payloadSize, file: file, meta: meta, rule: rule)
    }

    /// The bytes that count against limits: payload and extended data.
    package var size: Int64 { payloadSize + Int64(meta.extendedData?.count ?? 0) }
}

/// What memory is told of a row: its version, and how long it is served.
@usableFromInline
package struct RowSummary: Sendable {
    @usableFromInline package let id: Int64
    @usableFromInline package let revision: Int64
    /// The last moment at which the entry is served, if it is not accessed; `.max` if it never expires.
    @usableFromInline package let end: Int64
    /// The milliseconds by which each access moves the end; nil if none does.
    @usableFromInline package let slidingAge: Int64?
    @usableFromInline package let writtenAt: Int64
    @usableFromInline package let refresh: RefreshHint

    @usableFromInline
    package init(
        id: Int64, revision: Int64, end: Int64, slidingAge: Int64?, writtenAt: Int64, refresh: RefreshHint = .none
    ) {
        (self.id, self.revision, self.end) = (id, revision, end)
        (self.slidingAge, self.writtenAt, self.refresh) = (slidingAge, writtenAt, refresh)
    }

    /// The summary of a row with this rule, its own or that of its cache.
    init(
        id: Int64, revision: Int64, _ rule: AgeRule, writtenAt: Int64, accessedAt: Int64, _ refresh: RefreshNote?
    ) {
        self.init(
            id: id, revision: revision,
            end: rule.end(writtenAt: writtenAt, accessedAt: accessedAt, id: id),
            slidingAge: rule.slidingAge, writtenAt: writtenAt, refresh: refresh?.hint(writtenAt: writtenAt) ?? .none)
    }

    package var version: RowVersion { RowVersion(id: id, revision: revision) }

    /// The milliseconds from the write or the last access to the end; 0 if there is no end.
    @inlinable package var age: Int64 {
        slidingAge ?? (end == .max ? 0 : max(0, end.subtractingSaturated(writtenAt)))
    }
}

extension EntryHeader {
    @usableFromInline package var summary: RowSummary {
        RowSummary(
            id: id, revision: revision, end: end, slidingAge: slidingAge, writtenAt: writtenAt,
            refresh: meta.refresh?.hint(writtenAt: writtenAt) ?? .none)
    }
}

/// A row as most are: its payload is in it, it has no attributes, and no access moves its end.
///
/// It has a quarter of the size of a header, and one reference to count.
@usableFromInline
package struct PlainRow: Sendable {
    @usableFromInline package let payload: Data
    let id: Int64
    @usableFromInline package let revision: Int64
    let writtenAt: Int64
    /// The last moment at which the entry is served; `.max` if it never expires.
    @usableFromInline package let end: Int64

    @usableFromInline package var summary: RowSummary {
        RowSummary(id: id, revision: revision, end: end, slidingAge: nil, writtenAt: writtenAt)
    }
}

/// A row with its payload.
@usableFromInline
package struct StoredRow: Sendable {
    @usableFromInline package internal(set) var header: EntryHeader
    @usableFromInline package let payload: Data
    /// What the hash of the file has to be; nil if the payload was in the row.
    var fileChecksum: Int64?
    /// A Boolean value that indicates whether a payload in the row fits the checksum.
    var isSound = true
}
