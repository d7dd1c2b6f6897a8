package import Foundation

/// What a call asks of the rows of one cache, whole: one value from the call to the commit.
@usableFromInline
package struct Change: Sendable {
    package enum Work: Sendable {
        case put([EntryWrite])
        case remove([StoredKey])
        /// Removes a key, whose row is returned.
        case take(StoredKey)
        /// Changes an entry, unless it has expired at the moment.
        case attributes(StoredKey, AttributeChange, at: Int64)
        case clear
        /// Writes notes next to the entries by their numbers; nil deletes one.
        case note([Int64: [UInt8]?])
    }

    /// Whose change it is, which decides the loads that it overtakes.
    package enum Origin: Sendable {
        case program
        /// The load with a number.
        case load(Int)
    }

    /// Called after the commit, or once a change that has changed nothing is done, under the writer's lock and in the order of
    /// commits, before reads agree with it.
    ///
    /// It locks leaves alone, decodes nothing and waits for nothing. What it displaces it defers.
    @usableFromInline
    package typealias Taking = @Sendable (_ outcome: Outcome, _ deferred: inout Deferred) -> Void

    package var work: Work
    package let origin: Origin
    package let condition: (any ChangeCondition)?
    /// The memory whose loads it overtakes; nil for all that are attached to the cache.
    package let tier: (any TierDelegate)?
    /// What memory does once the change is made.
    package let taking: Taking?

    package init(
        _ work: Work, by origin: Origin = .program, if condition: (any ChangeCondition)? = nil,
        in tier: (any TierDelegate)? = nil, taking: Taking? = nil
    ) {
        (self.work, self.origin, self.condition, self.tier, self.taking) = (work, origin, condition, tier, taking)
    }

    /// The loads that it overtakes in the transaction, before its condition is asked.
    ///
    /// It is nil for a load's: its condition claims the keys, or it renews a row that it has seen. A clear overtakes where rows are retired.
    var overtakenBefore: Overtaken? {
        if case .load = origin { return nil }
        return switch work {
        case .put(let entries): .keys(entries.map(\.key))
        case .remove(let keys): .keys(keys)
        case .take(let key), .attributes(let key, _, _): .keys([key])
        case .clear, .note: nil
        }
    }

    /// The loads that it overtakes after the commit.
    func overtakenAfter(_ outcome: Outcome) -> Overtaken? {
        if case .load(let load) = origin { return .keys(outcome.rows.map(\.key), except: load) }
        return overtakenBefore
    }

    /// The key, if it is about one alone.
    package var onlyKey: StoredKey? {
        switch work {
        case .put(let entries): entries.count == 1 ? entries[0].key : nil
        case .remove(let keys): keys.count == 1 ? keys[0] : nil
        case .take(let key), .attributes(let key, _, _): key
        case .clear, .note: nil
        }
    }

    /// The value files that were written for it.
    var files: [String] {
        guard case .put(let entries) = work else { return [] }
        return entries.compactMap(\.file)
    }
}

/// Changes that overtake the loads of all memory.
extension Change {
    package static let clear = Change(.clear)

    package static func put(
        _ entries: [EntryWrite], by origin: Origin = .program, if condition: (any ChangeCondition)? = nil,
        taking: Taking? = nil
    ) -> Change {
        Change(.put(entries), by: origin, if: condition, taking: taking)
    }

    package static func remove(
        _ keys: [StoredKey], by origin: Origin = .program, if condition: (any ChangeCondition)? = nil
    ) -> Change {
        Change(.remove(keys), by: origin, if: condition)
    }
}

/// A change of attributes, which reads no payload.
package enum AttributeChange: Sendable {
    case extendedData(Data?)
    case pin(Bool)
    /// Restarts the age at a moment, with another age of the entry's own; nil leaves the one that it has.
    case touch(at: Int64, ownAge: AgeRule?)
    /// Restarts the age of a row at a moment, whether it has expired or not, unless it was written since.
    case renew(EntryHeader, at: Int64)
}

/// Whether a change may be made.
///
/// It is asked under the writer's lock in the transaction, and again if that is done again, so it takes a leaf lock alone. Asking may claim
/// the keys for a load: then the condition of no other load of them holds.
package protocol ChangeCondition: Sendable {
    func holds() -> Bool
}

/// Loads that are not to store their results.
package enum Overtaken: Sendable {
    /// Those of keys, except a load that has written them.
    case keys([StoredKey], except: Int? = nil)
    /// Those whose results have a tag.
    case tagged(String)
    /// Those of keys that are texts which begin so.
    case prefix(String)
    case all

    var isAll: Bool { if case .all = self { true } else { false } }
    var isEmpty: Bool { if case .keys(let keys, _) = self { keys.isEmpty } else { false } }
}
