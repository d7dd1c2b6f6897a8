internal import LarderStore

/// The limits of a cache's memory.
public struct MemoryLimits: Hashable, Sendable {
    /// The maximum number of entries; nil means no limit.
    ///
    /// Exactly this number is allowed.
    public var countLimit: Int?

    /// The maximum total cost of the entries; nil means no limit.
    ///
    /// If a write gives no cost, the cost is the size of the payload.
    public var costLimit: Int?

    /// The maximum number of bytes of memory that the entries take; nil means no limit.
    ///
    /// An entry takes its key, its value, and its place in the table. The size of the payload counts for the value,
    /// whatever its cost is; see ``MemoryTier/totalBytes``.
    public var byteLimit: Int?

    /// The time for which a copy in memory is used; nil means any.
    ///
    /// After that the next read of the key compares it with its row, of which it reads no payload, and uses it again if it is still the
    /// same. ``MemoryTier`` has no value for the key until then. Entries expire by the age of the cache, whatever this is. The age counts
    /// from the last comparison, also if it is one since the last access. For copies of a shared cache, which only its tier knows to be old,
    /// use `SharedOptions.localMaxAge`.
    public var maxAge: MaxAge?

    /// The default byte limit: 32 MiB.
    public static let defaultByteLimit = 32 << 20

    /// Creates limits; by default there is only a byte limit of 32 MiB.
    public init(
        countLimit: Int? = nil, costLimit: Int? = nil, byteLimit: Int? = MemoryLimits.defaultByteLimit,
        maxAge: MaxAge? = nil
    ) {
        self.maxAge = maxAge
        self.countLimit = countLimit
        self.costLimit = costLimit
        self.byteLimit = byteLimit
    }

    /// Limits that keep no entry in memory; every read asks the disk.
    public static let disabled = MemoryLimits(countLimit: 0, costLimit: 0, byteLimit: 0)

    /// The limits in words, for the log.
    var text: String {
        let limits = [
            countLimit.map { "\($0) entries" }, costLimit.map { "a cost of \($0)" }, byteLimit.map { "\($0) bytes" },
            maxAge.map { "an age of \($0)" },
        ].compactMap(\.self)
        return limits.isEmpty ? "none" : limits.joined(separator: " and ")
    }

    var effectiveCount: Int { max(0, countLimit ?? .max) }
    var effectiveCost: Int { max(0, costLimit ?? .max) }
    var effectiveBytes: Int { max(0, byteLimit ?? .max) }

    /// The limits with 0 instead of each negative number.
    var counted: MemoryLimits {
        MemoryLimits(
            countLimit: countLimit.map { max(0, $0) }, costLimit: costLimit.map { max(0, $0) },
            byteLimit: byteLimit.map { max(0, $0) }, maxAge: maxAge)
    }

    /// The milliseconds for which a copy is used; `.max` for any.
    var effectiveAge: Int64 {
        guard let maxAge else { return .max }
        return switch maxAge.isNumber ? maxAge.rule : .sinceWrite(0) {
        case .unlimited: .max
        case .sinceWrite(let age), .sinceAccess(let age), .jittered(let age, _): max(0, age)
        case .until: 0
        }
    }
}

/// The limits of a cache's disk tier.
///
/// Opening a cache with a negative number throws.
public struct DiskLimits: Hashable, Sendable {
    /// The maximum number of entries; nil means no limit.
    ///
    /// Exactly this number is allowed.
    public var countLimit: Int?

    /// The maximum number of bytes of all payloads and extended data; nil means no limit.
    public var sizeLimit: Int64?

    /// Creates limits; by default there are none.
    public init(countLimit: Int? = nil, sizeLimit: Int64? = nil) {
        self.countLimit = countLimit
        self.sizeLimit = sizeLimit
    }

    /// The limits in words, for the log.
    var text: String {
        let limits = [countLimit.map { "\($0) entries" }, sizeLimit.map { "\($0) bytes" }].compactMap(\.self)
        return limits.isEmpty ? "none" : limits.joined(separator: " and ")
    }

    func check(cacheNamed name: String) throws(CacheError) {
        if let countLimit, countLimit < 0 { throw Self.refusal("\(countLimit) entries", name) }
        if let sizeLimit, sizeLimit < 0 { throw Self.refusal("\(sizeLimit) bytes", name) }
    }

    private static func refusal(_ limit: String, _ name: String) -> CacheError {
        CacheError(
            .invalidConfiguration, "Cache \"\(name)\" cannot keep \(limit) on disk; give zero or more, or nil for any.")
    }
}

/// The treatment of a stored value that does not decode.
public enum UndecodablePolicy: Hashable, Sendable {
    /// The entry is deleted in the background.
    case drop
    /// The entry stays on disk.
    case keep
}

/// The behavior of a write when the disk is full.
public enum FullDiskPolicy: Hashable, Sendable {
    /// The write makes room: expired entries are evicted, then the least recently used, before the write fails.
    ///
    /// If the write fails after that, the evicted entries stay deleted.
    case evict
    /// The write fails with ``CacheError/Code/storageFull``.
    case fail
}

/// The options of a cache; the defaults are meant for most caches.
public struct CacheOptions: Sendable {
    /// The limits of the memory tier; nil, the default, leaves those that the cache has.
    ///
    /// The limits belong to the cache: the latest open that names any sets them. A cache that is opened for the first time
    /// in a manager has ``MemoryLimits/init(countLimit:costLimit:byteLimit:maxAge:)`` with its defaults.
    public var memory: MemoryLimits?

    /// The limits of the disk tier; nil, the default, leaves those that the cache has in the file.
    ///
    /// The limits belong to the cache: the latest open that names any sets them. `DiskLimits()` removes them.
    public var disk: DiskLimits?

    /// The maximum number of bytes of a payload that is kept in its row; a larger one is stored in a value file.
    ///
    /// 0 stores every value that is not empty in a file, `.max` none. At the default, reading a file is as fast as
    /// reading a row, see *Design decisions*.
    public var inlineLimit: Int

    /// The precision with which the time of the last access is stored; nil leaves the choice to the library.
    ///
    /// An access within the grain of the stored time writes nothing. The default is a sixteenth of a sliding age,
    /// else an hour if the cache or the store has a limit on disk, else a day. With `.zero` every access is stored.
    /// The grain belongs to the handle. For values that memory serves, the latest open sets it.
    public var accessGrain: Duration?

    /// The treatment of a stored value that does not decode.
    public var undecodable: UndecodablePolicy

    /// The behavior of a write when the disk is full.
    ///
    /// The default is ``FullDiskPolicy/evict``: entries of the same cache are evicted. A pinned entry stays until it
    /// has expired. `update` and transactions evict nothing. The option belongs to the handle.
    public var onFullDisk: FullDiskPolicy

    /// A Boolean value that indicates whether the cache releases memory when the system runs short of it.
    public var clearsOnMemoryPressure: Bool

    /// The time for which sweeps keep an expired entry, so that it can still serve as a stale value.
    public var keepsExpired: Duration

    /// A Boolean value that indicates whether the cache releases memory when the app goes into the background.
    ///
    /// On systems without a background state, such as Linux and macOS, this has no effect.
    public var clearsInBackground: Bool

    /// What is read into memory when the cache is opened; nil, the default, for nothing.
    ///
    /// The cache notes which entries memory has used last: when the manager is closed or suspended, and hourly if that has changed. The
    /// first opening in a manager reads these in the background, see ``Cache/warmed()``. The latest open that names a number sets it.
    public var warms: WarmStart?

    /// The number of removals that are remembered, so that `explain` says why a key is not there; 4,096 by default.
    ///
    /// They take 16 bytes each in memory, once there is one. The first open of a cache in a manager sets the number.
    public var remembersRemovals: Int

    /// A closure that suggests the readable part of the name of a key's value file, given the key as text.
    ///
    /// The text of a key is the key itself, its digits, or the hexadecimal digits of its encoding. The result is
    /// cleaned. Its extension becomes that of the file. If the result is empty, the library chooses the whole name.
    public var fileName: (@Sendable (String) -> String)?

    /// The default inline limit: 32 KiB.
    public static let defaultInlineLimit = 32 << 10

    /// Creates options, each with its default.
    public init(
        memory: MemoryLimits? = nil, disk: DiskLimits? = nil,
        accessGrain: Duration? = nil, inlineLimit: Int = CacheOptions.defaultInlineLimit,
        undecodable: UndecodablePolicy = .drop,
        onFullDisk: FullDiskPolicy = .evict,
        clearsOnMemoryPressure: Bool = true, clearsInBackground: Bool = false, keepsExpired: Duration = .zero,
        warms: WarmStart? = nil, remembersRemovals: Int = 4096,
        fileName: (@Sendable (String) -> String)? = nil
    ) {
        self.memory = memory
        self.disk = disk
        self.accessGrain = accessGrain
        self.inlineLimit = inlineLimit
        self.clearsInBackground = clearsInBackground
        self.fileName = fileName
        self.undecodable = undecodable
        self.onFullDisk = onFullDisk
        self.clearsOnMemoryPressure = clearsOnMemoryPressure
        self.keepsExpired = keepsExpired
        self.warms = warms
        self.remembersRemovals = remembersRemovals
    }
}

/// How many of the entries that memory has used last are noted for the next opening.
public enum WarmStart: Hashable, Sendable {
    /// So many entries.
    case entries(Int)

    /// As many as take so many bytes of memory, as ``MemoryTier/totalBytes`` counts them.
    case bytes(Int)

    var amount: Int {
        switch self {
        case .entries(let count): count
        case .bytes(let bytes): bytes
        }
    }
}
