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
