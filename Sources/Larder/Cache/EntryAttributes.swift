public import Foundation
public import LarderStore

/// The attributes of an entry that is written.
@usableFromInline
package struct EntryAttributes: Sendable {
    package var cost: Int?
    package var maxAge: MaxAge?
    package var extendedData: Data?
    package var tags: Set<String>
    package var refresh: RefreshNote?
    /// Nil keeps the pin of an older entry.
    @usableFromInline var isPinned: Bool?
    /// The encoded value, if it is known.
    @usableFromInline package var payload: Data?

    @usableFromInline
    package init(
        cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = [],
        isPinned: Bool? = nil
    ) {
        (self.cost, self.maxAge, self.extendedData, self.tags) = (cost, maxAge, extendedData, tags)
        self.isPinned = isPinned
    }

    /// Returns what a row has of them, and the end of the entry alone.
    ///
    /// - Parameter subject: The key and the cache, for the message of an error.
    @usableFromInline
    func stored(
        at now: Int64, _ subject: @autoclosure () -> String
    ) throws(CacheError) -> (meta: RowMeta, end: Int64?) {
        var (meta, end) = (RowMeta(), Int64?.none)
        if let maxAge {
            try maxAge.requireNumber(subject())
            end = meta.setOwnAge(maxAge.rule, writtenAt: now)
        }
        meta.isPinned = isPinned ?? false
        meta.cost = cost.map { Int64(BoundedTable<Int, Int>.clamped($0)) }
        meta.extendedData = extendedData
        meta.refresh = refresh
        if !tags.isEmpty { meta.tags = Set(tags.map { CBORText.normalized($0) }).sorted() }
        return (meta, end)
    }
}
