public import Foundation
public import LarderStore

/// What an entry has besides its value, as the rule of a cache gives it.
///
/// A rule makes tags an index over fields of the values:
///
/// ```swift
/// let articles: Cache<Int, Article> = try manager.cache(
///     named: "articles", version: "3", maxAge: .days(7),
///     attributes: { _, article in EntryAttributes(tags: ["author:\(article.author)"]) })
/// ```
///
/// The rule is asked for each value that is written: by the subscript, `setValue`, `setValues`, `update`, transactions,
/// loads and shared caches, and for each value that a migration converts. What a call gives itself takes the place of
/// what the rule gives, each attribute for itself. An empty set of tags gives none, but for that of `update`.
///
/// A rule runs on the thread of the write, in `update` and transactions while the writer of the store is held. It may
/// not use the manager.
public struct EntryAttributes: Sendable {
    /// The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    public var tags: Set<String>

    /// The cost of the value against the cost limit of memory; nil for the size of its payload.
    public var cost: Int?

    /// The maximum age of the entry, in place of the cache's.
    public var maxAge: MaxAge?

    package var extendedData: Data?
    package var refresh: RefreshNote?
    /// Nil keeps the pin of an older entry.
    @usableFromInline var isPinned: Bool?
    /// The encoded value, if it is known: that of a shared cache, whose node has asked the rule already.
    @usableFromInline package var payload: Data?

    /// Creates the attributes of an entry.
    ///
    /// - Parameters:
    ///   - tags: The tags by which the entry is found.
    ///   - cost: The cost of the value in memory; nil for the size of its payload.
    ///   - maxAge: The maximum age of the entry; nil for the cache's.
    public init(tags: Set<String> = [], cost: Int? = nil, maxAge: MaxAge? = nil) {
        (self.tags, self.cost, self.maxAge) = (tags, cost, maxAge)
    }

    @usableFromInline
    package init(
        cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data?, tags: Set<String> = [], isPinned: Bool? = nil
    ) {
        (self.cost, self.maxAge, self.extendedData, self.tags) = (cost, maxAge, extendedData, tags)
        self.isPinned = isPinned
    }

    /// Takes from others what these leave out.
    mutating func fill(from others: EntryAttributes) {
        if tags.isEmpty { tags = others.tags }
        (cost, maxAge) = (cost ?? others.cost, maxAge ?? others.maxAge)
    }

    /// Returns what a row has of them, and the end of the entry alone.
    ///
    /// - Parameter subject: The key and the cache, for the message of an error.
    @usableFromInline
    func stored(
        at now: Int64, _ subject: @autoclosure () -> String
    ) throws(CacheError) -> (meta: RowMeta, end: Int64?) {
        var (meta, end) = (RowMeta(), Int64?.none)
        meta.isPinned = isPinned ?? false
        meta.extendedData = extendedData
        meta.refresh = refresh
        try replace(in: &meta, &end, writtenAt: now, subject())
        return (meta, end)
    }

    /// Replaces the tags of a row, and the cost and the age if these give them.
    func replace(
        in meta: inout RowMeta, _ end: inout Int64?, writtenAt: Int64, _ subject: @autoclosure () -> String
    ) throws(CacheError) {
        if let maxAge {
            try maxAge.requireNumber(subject())
            end = meta.setOwnAge(maxAge.rule, writtenAt: writtenAt)
        }
        if let cost { meta.cost = Int64(BoundedTable<Int, Int>.clamped(cost)) }
        meta.tags = tags.isEmpty ? [] : Set(tags.map { CBORText.normalized($0) }).sorted()
    }
}
