internal import Synchronization

/// In what order ``Cache/entries(orderedBy:descending:prefix:limit:)`` gives entries.
public enum EntryOrder: Hashable, Sendable {
    /// By key: integers by value, strings by their UTF-8 bytes, other keys by their encoding.
    case key
    /// By the moment of the last write.
    case written
    /// By the last access, read or write.
    ///
    /// It is as exact as ``CacheOptions/accessGrain``, unless the memory of this process knows better.
    case accessed
    /// By the bytes of payload and extended data.
    case size
}

/// Entries of a sub-cache in an order; see ``Cache/entries(orderedBy:descending:prefix:limit:)``.
public struct CacheEntries<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    let cache: Cache<Key, Value>
    let order: EntryOrder
    let isDescending: Bool
    let prefix: String?
    let limit: Int?

    /// Starts a pass, in the order of this moment.
    public func makeIterator() -> Iterator {
        Iterator(pass: cache.pass(by: order, isDescending, prefix), rest: limit ?? .max)
    }

    /// A pass over entries in an order.
    public struct Iterator: IteratorProtocol, Sendable {
        fileprivate var pass: EntryPass<Key, Value>
        fileprivate var rest: Int

        /// The next entry, or nil at the end.
        public mutating func next() -> CacheEntry<Key, Value>? {
            guard rest > 0, let entry = pass.next() else {
                rest = 0
                return nil
            }
            rest -= 1
            return entry
        }
    }
}

extension Cache {
    /// The entries, with what is stored beside their values, in an order of choice.
    ///
    /// An iteration holds a page of entries, and neither lock nor transaction between pages. In another order than by
    /// key it goes by the order at its start, for which it keeps 8 bytes an entry. An entry that is written or read in
    /// the meantime comes once, at its old place. A key that is removed and written again in the meantime may be left
    /// out, and it may come twice.
    ///
    /// - Parameters:
    ///   - order: By what they are ordered.
    ///   - descending: Whether the last comes first.
    ///   - prefix: How the keys begin, in UTF-8 bytes of the stored NFC form; nothing matches for keys that are not strings.
    ///   - limit: How many are given at most.
    public func entries(
        orderedBy order: EntryOrder = .key, descending: Bool = false, prefix: String? = nil, limit: Int? = nil
    ) -> CacheEntries<Key, Value> {
        CacheEntries(cache: self, order: order, isDescending: descending, prefix: prefix, limit: limit)
    }

    fileprivate func pass(
        by order: EntryOrder, _ isDescending: Bool, _ prefix: String?
    ) -> EntryPass<Key, Value> {
        let rowOrder: RowOrder? =
            switch order {
            case .key: nil
            case .written: .written
            case .accessed: .accessed
            case .size: .size
            }
        if rowOrder != nil {
            do throws(CacheError) {
                // The order is that of the rows once they are corrected.
                if ledger.isSetBack, !ledger.store.inside.containCurrent { try ledger.flushUsesWhereRoom() }
            } catch {
                noteFailedPass(error)
            }
        }
        let pass = OrderedPass(rowOrder, descending: isDescending, prefix: prefix.map { CBORText.normalized($0) })
        return EntryPass(self, .ordered(pass))
    }
}
