package import Foundation

/// A row without its payload.
package struct RowFacts: Sendable {
    package let key: StoredKey
    package let id: Int64
    package let revision: Int64
    package let writtenAt: Int64
    /// The end of the entry alone; nil if the rule of the cache holds, `.max` if the entry has no end.
    package let expiresAt: Int64?
    /// The bytes of the payload.
    package let payloadSize: Int64
    /// The name of the file with the payload; nil if the payload is in the row.
    package let file: String?
    package let meta: RowMeta

    /// The bytes that count against limits: payload and extended data.
    package var size: Int64 { payloadSize + Int64(meta.extendedData?.count ?? 0) }

    /// Returns whether the entry has expired by its own age, or by the rule of its cache.
    package func isExpired(by rule: AgeRule, accessedAt: Int64?, now: Int64) -> Bool {
        let accessedAt = max(accessedAt ?? writtenAt, writtenAt)
        if let age = meta.slidingAge {
            return AgeRule.sinceAccess(age).isExpired(writtenAt: writtenAt, accessedAt: accessedAt, now: now)
        }
        if let expiresAt { return now > expiresAt }
        return rule.isExpired(writtenAt: writtenAt, accessedAt: accessedAt, now: now)
    }
}

/// A row with its payload.
package struct StoredRow: Sendable {
    package let facts: RowFacts
    package let payload: Data
}

/// A number of entries and their bytes.
package struct Totals: Hashable, Sendable {
    package var count: Int64 = 0
    package var size: Int64 = 0

    package init(count: Int64 = 0, size: Int64 = 0) {
        (self.count, self.size) = (count, size)
    }

    static func += (a: inout Totals, b: Totals) {
        a.count += b.count
        a.size += b.size
    }
}
