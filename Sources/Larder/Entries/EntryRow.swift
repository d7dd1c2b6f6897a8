package import Foundation

/// What a row says of an entry, without its bytes.
package struct EntryFacts: Sendable {
    package let id: Int64
    package let revision: Int64
    package let size: Int64
    package let writtenAt: Int64
    package let accessedAt: Int64
    /// The entry's own age, if it has one.
    package let age: StoredAge?
    package let isPinned: Bool
    /// Name of the payload's file, if it is not in the row.
    package let file: String?
    package let checksum: Int64

    /// The rule of this entry, where those without one of their own follow `rule`.
    package func rule(else rule: AgeRule) -> AgeRule { age?.rule ?? rule }

    /// The same with other moments.
    package func seen(writtenAt: Int64, accessedAt: Int64) -> EntryFacts {
        if writtenAt == self.writtenAt && accessedAt == self.accessedAt { return self }
        return EntryFacts(
            id: id, revision: revision, size: size, writtenAt: writtenAt, accessedAt: accessedAt, age: age,
            isPinned: isPinned, file: file, checksum: checksum)
    }

    /// Whether the entry is over at `now`.
    package func isExpired(_ rule: AgeRule, now: Int64) -> Bool {
        let rule = self.rule(else: rule)
        return rule.isExpired(start: rule.isSliding ? accessedAt : writtenAt, now: now)
    }
}

/// A row with its bytes.
package struct EntryRow: Sendable {
    package let facts: EntryFacts
    package let extended: Data?
    /// Nil where the payload is in a file.
    package let payload: Data?
}

extension EntryRow {
    /// The same with the payload that its file holds.
    package func with(_ payload: Data) -> EntryRow {
        EntryRow(facts: facts, extended: extended, payload: payload)
    }
}

/// The file that a row names.
package struct StoredFile: Hashable, Sendable {
    package let name: String
    package let checksum: Int64

    package init(name: String, checksum: Int64) {
        self.name = name
        self.checksum = checksum
    }
}

/// What a read of a value needs of a row, and no more.
package struct BriefRow: Sendable {
    package let revision: Int64
    package let size: Int64
    package let writtenAt: Int64
    package let accessedAt: Int64
    package let age: StoredAge?
    package let extendedCount: Int
    /// Nil where the payload is in a file, or the row is damaged.
    package let payload: Data?
    package let hasFile: Bool

    /// The payload of a row that we could have written.
    package var soundPayload: Data? {
        guard let payload, size == Int64(payload.count + extendedCount) else { return nil }
        return payload
    }

    /// What decides whether it is served; of the rest it knows nothing.
    package var facts: EntryFacts {
        EntryFacts(
            id: 0, revision: revision, size: size, writtenAt: writtenAt, accessedAt: accessedAt, age: age,
            isPinned: false, file: nil, checksum: 0)
    }
}

/// A row with its key, as listings give it.
package struct ListedRow: Sendable {
    package let key: StoredKey
    package let row: EntryRow
}

/// What a row says, with its key.
package struct ListedFacts: Sendable {
    package let key: StoredKey
    package let facts: EntryFacts
}

/// A key, and what its row says where that decides whether it counts.
package struct ListedKey: Sendable {
    package let key: StoredKey
    package let facts: EntryFacts?
}

/// What a write puts into a row.
package struct EntryContent: Sendable {
    package var payload: Data
    package var extended: Data?
    package var writtenAt: Int64
    package var age: StoredAge?
    package var isPinned: Bool

    package init(
        payload: Data, extended: Data? = nil, writtenAt: Int64, age: StoredAge? = nil, isPinned: Bool = false
    ) {
        self.payload = payload
        self.extended = extended
        self.writtenAt = writtenAt
        self.age = age
        self.isPinned = isPinned
    }

    /// Payload and extended data, in bytes.
    package var size: Int { payload.count + (extended?.count ?? 0) }
}
