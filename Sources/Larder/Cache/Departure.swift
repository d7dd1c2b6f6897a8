public import Foundation
internal import LarderStore

/// That a key has left a cache, as this process has seen it; see ``Presence/history``.
public struct Departure: Sendable, Hashable, CustomStringConvertible {
    /// The reason for which a key has left.
    public enum Cause: Sendable, Hashable {
        /// A call has removed it, by its key, by a prefix or by a predicate.
        case removed
        /// A call has removed the entries with one of its tags.
        case removedByTag
        /// A call has removed all entries, or the cache was removed or opened under another version.
        case removedWithAll
        /// Its age has passed, and its row was deleted.
        case expired
        /// It had to make room.
        case evicted(CacheEvent.Eviction)
        /// Its row or its file was damaged.
        case damaged
        /// Its value did not decode.
        case undecodable
        /// Another process or manager has removed or replaced it. That is noticed by a read of a copy in memory.
        case changedElsewhere
    }

    /// The reason.
    public let cause: Cause

    /// When this process noticed it.
    public let at: Date

    /// A sentence that says what has happened, and what would have kept the entry.
    public let description: String

    init(_ cause: Cause, at moment: Int64, _ limits: DiskLimits) {
        (self.cause, at) = (cause, SystemClock.date(of: moment))
        let text =
            switch cause {
            case .removed: "A call has removed it."
            case .removedByTag: "A call has removed the entries with one of its tags."
            case .removedWithAll: "All entries were removed, or the cache was opened under another version."
            case .expired: "It has expired. A longer age would have kept it."
            case .evicted(.count):
                "There were too many entries, or a call has trimmed them. A higher `countLimit` would have kept it longer\(Self.now(limits.countLimit))."
            case .evicted(.size):
                "The entries had too many bytes for the limit of the cache or of the store. A higher `sizeLimit` would have kept it longer"
                    + "\(Self.now(limits.sizeLimit))."
            case .evicted(.freeSpace): "The disk was short of space."
            case .evicted(.decider): "An eviction closure has chosen it."
            case .damaged: "Its row or its file was damaged."
            case .undecodable: "Its value did not decode."
            case .changedElsewhere: "Another process or manager has removed or replaced it."
            }
        description = "\(at): \(text)"
    }

    private static func now(_ limit: (some CustomStringConvertible)?) -> String { limit.map { "; it is \($0)" } ?? "" }
}

/// The last removals of a cache, by the hashes of their keys.
struct RemovalRing: Sendable {
    /// A removal in 16 bytes.
    private struct Entry: Sendable {
        let hash: UInt64
        /// The moment, and the number of the cause in the last 8 bits.
        let stamp: Int64

        var moment: Int64 { stamp >> 8 }
        var cause: Int { Int(stamp & 255) }
    }

    private var entries: [Entry] = []
    private var next = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// Notes that a key has left; nil for all keys.
    mutating func note(_ hash: UInt64?, _ cause: Departure.Cause, at moment: Int64) {
        if limit == 0 { return }
        let entry = Entry(hash: hash ?? 0, stamp: moment << 8 | cause.number)
        if entries.count < limit {
            if entries.isEmpty { entries.reserveCapacity(min(limit, 1 << 16)) }
            entries.append(entry)
        } else {
            entries[next] = entry
        }
        next = (next + 1) % limit
    }

    /// Returns the removals of a key, the latest first.
    func departures(of hash: UInt64) -> [(cause: Departure.Cause, moment: Int64)] {
        let ordered = entries.count < limit ? entries[...] : entries[next...] + entries[..<next]
        return ordered.reversed().compactMap { entry in
            let cause = Self.causes[entry.cause]
            return entry.hash == hash || cause == .removedWithAll ? (cause, entry.moment) : nil
        }
    }

    private static let causes: [Departure.Cause] = [
        .removed, .removedByTag, .removedWithAll, .expired, .evicted(.count), .evicted(.size), .evicted(.freeSpace),
        .evicted(.decider), .damaged, .undecodable, .changedElsewhere,
    ]
}

extension Departure.Cause {
    /// The place of the cause in ``RemovalRing``; a search for it would allocate.
    fileprivate var number: Int64 {
        switch self {
        case .removed: 0
        case .removedByTag: 1
        case .removedWithAll: 2
        case .expired: 3
        case .evicted(.count): 4
        case .evicted(.size): 5
        case .evicted(.freeSpace): 6
        case .evicted(.decider): 7
        case .damaged: 8
        case .undecodable: 9
        case .changedElsewhere: 10
        }
    }

    init(_ cause: RemovedRow.Cause) {
        self =
            switch cause {
            case .removed: .removed
            case .tagged: .removedByTag
            case .expired: .expired
            case .evicted(.count): .evicted(.count)
            case .evicted(.size): .evicted(.size)
            case .evicted(.space): .evicted(.freeSpace)
            case .decided: .evicted(.decider)
            case .damaged: .damaged
            case .undecodable: .undecodable
            }
    }
}
