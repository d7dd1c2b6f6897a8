public import Foundation
internal import LarderStore

/// What is known of an entry without its value.
public struct EntryMetadata: Hashable, Sendable {
    /// The bytes of the payload and the extended data.
    public let size: Int

    /// The moment of the last write.
    public let writtenAt: Date

    /// The moment of the last write or access.
    ///
    /// It is as exact as ``CacheOptions/accessGrain``, unless the memory of this process knows better.
    public let accessedAt: Date

    /// The last moment at which the entry is served, as far as is known now; nil if there is none.
    public let expiresAt: Date?

    /// A Boolean value that indicates whether limits and trims leave the entry on disk.
    public let isPinned: Bool

    /// A Boolean value that indicates whether the payload is a file of its own.
    public let isFile: Bool

    /// The tags of the entry.
    public let tags: Set<String>

    /// The cost that the entry was given for the limit in memory; nil if it is the size of its payload.
    public let cost: Int?

    /// The moment from which generators load the value again, as its origin has said; nil if it has not.
    ///
    /// See ``Generated/value(_:maxAge:cost:extendedData:tags:refreshAfter:)``.
    public let refreshesAt: Date?

    /// Creates metadata, for tests of a program's own code.
    ///
    /// - Parameters:
    ///   - size: The bytes of the payload and the extended data.
    ///   - writtenAt: The time of the write.
    ///   - accessedAt: The time of the last access; nil for that of the write.
    ///   - expiresAt: The last moment at which the entry is served; nil if it never expires.
    ///   - isPinned: A Boolean value that indicates whether limits and trims leave the entry on disk.
    ///   - isFile: A Boolean value that indicates whether the payload is a file of its own.
    ///   - tags: The tags of the entry.
    ///   - cost: The cost that the entry was given.
    ///   - refreshesAt: The moment from which generators load the value again.
    public init(
        size: Int = 0, writtenAt: Date = Date(timeIntervalSinceReferenceDate: 0), accessedAt: Date? = nil,
        expiresAt: Date? = nil, isPinned: Bool = false,
        isFile: Bool = false, tags: Set<String> = [], cost: Int? = nil, refreshesAt: Date? = nil
    ) {
        (self.size, self.writtenAt, self.accessedAt) = (size, writtenAt, accessedAt ?? writtenAt)
        (self.expiresAt, self.isPinned, self.isFile) = (expiresAt, isPinned, isFile)
        (self.tags, self.cost, self.refreshesAt) = (tags, cost, refreshesAt)
    }

    init(_ header: EntryHeader) {
        size = Int(clamping: header.size)
        writtenAt = SystemClock.date(of: header.writtenAt)
        accessedAt = SystemClock.date(of: header.accessedAt)
        // The expiration of an entry with an age of 0 is its write.
        let end = header.end == header.writtenAt.addingSaturated(-1) ? header.writtenAt : header.end
        expiresAt = end == .max ? nil : SystemClock.date(of: end)
        (isPinned, isFile) = (header.meta.isPinned, header.file != nil)
        (tags, cost) = (Set(header.meta.tags), header.meta.cost.map { Int(clamping: $0) })
        let moment = header.summary.refresh.moment
        refreshesAt = moment == .max ? nil : SystemClock.date(of: moment)
    }
}

/// A value with what is stored with it.
public struct CacheEntry<Key, Value> {
    /// The key.
    public let key: Key

    /// The value.
    public let value: Value

    /// The bytes that are stored with the value; nil if there are none.
    public let extendedData: Data?

    /// What is known of the entry.
    public let metadata: EntryMetadata

    /// A Boolean value that indicates whether the entry has expired.
    public let isExpired: Bool

    /// Creates an entry, for tests of a program's own code.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - value: The value.
    ///   - extendedData: The bytes that are stored with the value.
    ///   - metadata: What is known of the entry.
    ///   - isExpired: A Boolean value that indicates whether the entry has expired.
    public init(
        key: Key, value: Value, extendedData: Data? = nil, metadata: EntryMetadata = EntryMetadata(),
        isExpired: Bool = false
    ) {
        (self.key, self.value, self.extendedData) = (key, value, extendedData)
        (self.metadata, self.isExpired) = (metadata, isExpired)
    }
}

extension CacheEntry: Sendable where Key: Sendable, Value: Sendable {}

extension CacheEntry: Equatable where Key: Equatable, Value: Equatable {}

extension CacheEntry: Hashable where Key: Hashable, Value: Hashable {}
