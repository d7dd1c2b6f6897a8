public import Foundation

/// What is known of an entry without its value.
public struct EntryMetadata: Sendable {
    /// Payload and extended data, in bytes.
    public let size: Int

    /// When it was written last.
    public let writtenAt: Date

    /// When it was written or read last.
    ///
    /// It is as exact as ``CacheOptions/accessGrain``, unless the memory of this process knows better.
    public let accessedAt: Date

    /// The last moment at which it is served, as things stand; nil if there is none.
    public let expiresAt: Date?

    /// Whether limits and trims leave it alone.
    public let isPinned: Bool

    /// Whether its payload is a file of its own.
    public let isFile: Bool

    /// Whether it has an age of its own, whatever the handle's is.
    let hasOwnAge: Bool

    /// Whether it is the entry of a value that was made just now, for whoever waited for that.
    let isMade: Bool

    init(_ facts: EntryFacts, rule: AgeRule, accessedAt: Int64, isMade: Bool = false) {
        self.isMade = isMade
        size = Int(clamping: facts.size)
        writtenAt = SystemClock.date(of: facts.writtenAt)
        self.accessedAt = SystemClock.date(of: accessedAt)
        let rule = facts.rule(else: rule)
        expiresAt = rule.end(start: rule.isSliding ? accessedAt : facts.writtenAt).map(SystemClock.date(of:))
        isPinned = facts.isPinned
        isFile = facts.file != nil
        hasOwnAge = facts.age != nil
    }
}

extension EntryMetadata: Hashable {
    /// Whether the two say the same.
    public static func == (left: EntryMetadata, right: EntryMetadata) -> Bool {
        left.size == right.size && left.writtenAt == right.writtenAt && left.accessedAt == right.accessedAt
            && left.expiresAt == right.expiresAt && left.isPinned == right.isPinned && left.isFile == right.isFile
    }

    /// Hashes what it says.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(size)
        hasher.combine(writtenAt)
        hasher.combine(accessedAt)
        hasher.combine(expiresAt)
        hasher.combine(isPinned)
        hasher.combine(isFile)
    }
}

extension EntryMetadata {
    private init(_ other: EntryMetadata, expiresAt: Date?) {
        size = other.size
        writtenAt = other.writtenAt
        accessedAt = other.accessedAt
        self.expiresAt = expiresAt
        isPinned = other.isPinned
        isFile = other.isFile
        hasOwnAge = other.hasOwnAge
        isMade = other.isMade
    }

    fileprivate func seen(by rule: AgeRule) -> EntryMetadata {
        if hasOwnAge { return self }
        let start = SystemClock.milliseconds(of: rule.isSliding ? accessedAt : writtenAt)
        return EntryMetadata(self, expiresAt: rule.end(start: start).map(SystemClock.date(of:)))
    }
}

/// A value with what is stored beside it.
public struct CacheEntry<Key, Value> {
    /// The key.
    public let key: Key

    /// The value.
    public let value: Value

    /// The bytes that were stored beside the value, if any were.
    public let extendedData: Data?

    /// What is known of the entry.
    public let metadata: EntryMetadata

    /// Whether it is over.
    public let isExpired: Bool
}

extension CacheEntry {
    /// The same as a handle of this age tells of it.
    func seen(by rule: AgeRule) -> CacheEntry {
        CacheEntry(
            key: key, value: value, extendedData: extendedData, metadata: metadata.seen(by: rule), isExpired: isExpired)
    }
}

extension CacheEntry: Sendable where Key: Sendable, Value: Sendable {}

extension CacheEntry: Equatable where Key: Equatable, Value: Equatable {}

extension CacheEntry: Hashable where Key: Hashable, Value: Hashable {}
