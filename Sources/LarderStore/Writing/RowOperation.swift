package import Foundation

/// A change of attributes, which reads no payload.
package enum AttributeChange: Sendable {
    case extendedData(Data?)
    case pin(Bool)
    /// Restarts the age at a moment, with another age of the entry's own; nil leaves the one that it has.
    case touch(at: Int64, ownAge: AgeRule?)
    /// Restarts the age of a row at a moment, whether it has expired or not, unless it was written since.
    case renew(EntryHeader, at: Int64)
}

/// The changes that a request can make to the rows of one cache.
package enum RowOperation: Sendable {
    /// Asked in the transaction, and again if that is done again.
    ///
    /// It runs under the writer's lock, so it only looks at an atomic or takes a leaf lock.
    package typealias Condition = @Sendable () -> Bool

    case put([EntryWrite], if: Condition? = nil)
    case remove([StoredKey], if: Condition? = nil)
    case take(StoredKey)
    /// Changes an entry, unless it has expired at the moment.
    case change(StoredKey, AttributeChange, at: Int64 = .min)
    case clear
    /// Writes notes next to the entries by their numbers; nil deletes one.
    case note([Int64: [UInt8]?])

    /// The keys that the operation writes or removes, unless a load stores its result with it; none of a clear, which
    /// overtakes all loads where the rows are retired.
    var overtakingKeys: [StoredKey] {
        switch self {
        case .put(_, if: .some), .remove(_, if: .some), .change(_, .renew, _), .note, .clear: []
        case .put(let entries, _): entries.map(\.key)
        case .remove(let keys, _): keys
        case .take(let key), .change(let key, _, _): [key]
        }
    }

    /// The value files that were written for the operation.
    var files: [String] {
        guard case .put(let entries, _) = self else { return [] }
        return entries.compactMap(\.file)
    }
}
