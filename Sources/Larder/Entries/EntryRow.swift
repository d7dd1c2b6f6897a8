public import Foundation

/// What a row says of an entry, without its bytes.
@usableFromInline
package struct EntryFacts: Sendable {
    package let id: Int64
    @usableFromInline package let revision: Int64
    package let size: Int64
    package let writtenAt: Int64
    package let accessedAt: Int64
    /// The entry's own age, if it has one.
    package let age: StoredAge?
    package let isPinned: Bool
    /// Name of the payload's file, if it is not in the row.
    @usableFromInline package let file: String?
    /// The row's checksum, of these columns, the key, extended data, cost and payload: see ``SealedColumns``.
    package let checksum: Int64

    /// Whether the age of this entry runs from its last use, where those without one of their own follow `rule`.
    @usableFromInline
    package func isSliding(else rule: AgeRule) -> Bool { self.rule(else: rule).isSliding }

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
@usableFromInline
package struct EntryRow: Sendable {
    @usableFromInline package let facts: EntryFacts
    package let extended: Data?
    /// Nil where the payload is in a file that was not read yet, or in vain.
    @usableFromInline package let payload: Data?
    /// Whether the file was read in vain: it is damaged or gone.
    @usableFromInline package var lacksFile = false
    /// What it counts against the cost limit of memory, if a call gave that.
    package let cost: Int64?
    /// The checksum that the payload has if neither it nor the row is damaged.
    package let payloadChecksum: Int64
}

extension EntryRow {
    /// The same with the payload that its file holds; nil if the file is damaged or gone.
    package func with(_ payload: Data?) -> EntryRow {
        EntryRow(
            facts: facts, extended: extended, payload: payload, lacksFile: payload == nil, cost: cost,
            payloadChecksum: payloadChecksum)
    }

    /// Whether the payload is in hand, and it and the row are what was written.
    @usableFromInline
    package var isSound: Bool {
        guard let payload, facts.size == Int64(payload.count + (extended?.count ?? 0)) else { return false }
        // A file was checked when it was read.
        return facts.file != nil || payload.withUnsafeBytes { RowSeal.checksum($0) } == payloadChecksum
    }

    /// Whether no file is left to be read.
    @inlinable package var isInHand: Bool { facts.file == nil || payload != nil || lacksFile }
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
    package let file: String?
    /// The checksum that the payload has if neither it nor the row is damaged.
    package let payloadChecksum: Int64

    /// How long the payload is.
    package var payloadSize: Int64 { size - Int64(extendedCount) }

    /// The payload in the row, if it and the row are what was written.
    package var soundPayload: Data? {
        guard let payload, payloadSize == Int64(payload.count),
            payload.withUnsafeBytes({ RowSeal.checksum($0) }) == payloadChecksum
        else { return nil }
        return payload
    }

    /// What decides whether it is served; of the rest it knows nothing.
    package var facts: EntryFacts {
        EntryFacts(
            id: 0, revision: revision, size: size, writtenAt: writtenAt, accessedAt: accessedAt, age: age,
            isPinned: false, file: file, checksum: 0)
    }
}

/// A row with its key, as listings give it.
@usableFromInline
package struct ListedRow: Sendable {
    @usableFromInline package let key: StoredKey
    @usableFromInline package let row: EntryRow
}

/// What a row says, with its key.
@usableFromInline
package struct ListedFacts: Sendable {
    @usableFromInline package let key: StoredKey
    @usableFromInline package let facts: EntryFacts
}

/// Keys of a listing.
package enum ListedKeys: Sendable {
    /// With what their rows say, which decides whether they count.
    case judged([ListedFacts])
    /// Every one counts.
    case plain([StoredKey])
}

/// What a write puts into a row.
@usableFromInline
package struct EntryContent: Sendable {
    @usableFromInline package var payload: Data
    package var extended: Data?
    @usableFromInline package var writtenAt: Int64
    @usableFromInline package var age: StoredAge?
    /// Whether limits leave the entry on disk; nil leaves that as it is.
    package var isPinned: Bool?
    /// What it counts against the limit of memory, if that is not the size of the payload.
    package var cost: Int?
    /// In NFC and in order.
    package var tags: [String] = []
    /// A Boolean value that indicates whether an entry that is written over keeps its tags.
    package var keepsTags = false

    @usableFromInline
    package init(
        payload: Data, extended: Data? = nil, writtenAt: Int64, age: StoredAge? = nil, isPinned: Bool? = nil,
        cost: Int? = nil
    ) {
        self.payload = payload
        self.extended = extended
        self.writtenAt = writtenAt
        self.age = age
        self.isPinned = isPinned
        self.cost = cost
    }

    /// Sets the tags.
    @usableFromInline
    package mutating func setTags(_ tags: Set<String>) { self.tags = EntryTags.list(tags) }

    /// Payload and extended data, in bytes.
    package var size: Int { payload.count + (extended?.count ?? 0) }
}
