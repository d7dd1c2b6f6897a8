/// How much of a cache is kept in memory.
public struct MemoryLimits: Hashable, Sendable {
    /// How many entries; nil for any number.
    ///
    /// Being at the limit is allowed.
    public var countLimit: Int?

    /// What their costs may come to; nil for any cost.
    ///
    /// A cost is the size of the payload where none was given.
    public var costLimit: Int?

    /// The maximum number of bytes of memory that they take; nil for any.
    ///
    /// An entry takes its key, its value, and its place in the table. The size of the payload stands for the value,
    /// whatever its cost is; see ``MemoryTier/totalBytes``.
    public var byteLimit: Int?

    /// The byte limit where none is given: 32 MiB.
    public static let defaultByteLimit = 32 << 20

    /// Creates limits of a number, a cost and a number of bytes; 32 MiB of bytes by default.
    public init(
        countLimit: Int? = nil, costLimit: Int? = nil, byteLimit: Int? = MemoryLimits.defaultByteLimit
    ) {
        self.countLimit = countLimit
        self.costLimit = costLimit
        self.byteLimit = byteLimit
    }

    /// Nothing is kept in memory; every read asks the disk.
    public static let disabled = MemoryLimits(countLimit: 0, costLimit: 0, byteLimit: 0)

    var effectiveCount: Int { max(0, countLimit ?? .max) }
    var effectiveCost: Int { max(0, costLimit ?? .max) }
    var effectiveBytes: Int { max(0, byteLimit ?? .max) }

    /// The same, with 0 for a negative number, which counts as that.
    var counted: MemoryLimits {
        MemoryLimits(
            countLimit: countLimit.map { max(0, $0) }, costLimit: costLimit.map { max(0, $0) },
            byteLimit: byteLimit.map { max(0, $0) })
    }
}

/// How much of a cache is kept on disk.
///
/// Negative numbers are refused: taken for nothing they would empty it.
public struct DiskLimits: Hashable, Sendable {
    /// How many entries; nil for any number.
    ///
    /// Being at the limit is allowed.
    public var countLimit: Int?

    /// How many bytes payloads and extended data may come to; nil for any.
    public var sizeLimit: Int64?

    /// Limits of a number and a size; none by default.
    public init(countLimit: Int? = nil, sizeLimit: Int64? = nil) {
        self.countLimit = countLimit
        self.sizeLimit = sizeLimit
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
    /// Its entry is deleted in the background.
    case drop
    /// Its entry stays on disk.
    case keep
}

/// What a write does when the disk is full.
public enum FullDiskPolicy: Hashable, Sendable {
    /// Makes room: expired entries are evicted, then the least recently used, before the write fails.
    ///
    /// If the write fails after that, the evicted entries stay deleted.
    case evict
    /// Fails with ``CacheError/Code/storageFull``.
    case fail
}

/// How a cache works; the defaults are meant for most.
public struct CacheOptions: Sendable {
    /// How much is kept in memory.
    ///
    /// It belongs to the cache: the latest open sets it.
    public var memory: MemoryLimits

    /// How much is kept on disk.
    ///
    /// It belongs to the cache: the latest open sets it.
    public var disk: DiskLimits

    /// How many bytes a payload may have to be kept in its row; a larger one becomes a file of its own.
    ///
    /// 0 puts every value that is not empty into a file, `.max` none. The default is where reading a file becomes as fast
    /// as reading a row, see *Design decisions*.
    public var inlineLimit: Int

    /// How exactly the moment of the last access is stored; nil leaves the choice to the library.
    ///
    /// An access within the grain of the stored moment writes nothing. The default is a sixteenth of a sliding age, else an
    /// hour if the cache or the store has a limit on disk, else a day. With `.zero` every access is stored. It belongs
    /// to the handle; for values that memory serves the latest open sets it.
    public var accessGrain: Duration?

    /// The treatment of a stored value that does not decode.
    public var undecodable: UndecodablePolicy

    /// What a write does when the disk is full.
    ///
    /// The default is ``FullDiskPolicy/evict``: entries of the same cache are evicted. A pinned entry stays until it has
    /// expired. `update` and transactions evict nothing. The option belongs to the handle.
    public var onFullDisk: FullDiskPolicy

    /// Whether memory is given back when the system runs short of it.
    public var clearsOnMemoryPressure: Bool

    /// The time for which sweeps leave an entry that has expired, so that it can still serve as a stale value.
    public var keepsExpired: Duration

    /// Whether memory is given back when the app goes into the background.
    ///
    /// Systems without such a moment, Linux and macOS among them, never do.
    public var clearsInBackground: Bool

    /// Suggests the readable part of the name of a key's file, given the key as text.
    ///
    /// The key is its text, its digits, or the hexadecimal digits of its encoding. The result is cleaned; its extension
    /// becomes that of the file. Empty means a name of our own alone.
    public var fileName: (@Sendable (String) -> String)?

    /// The payloads up to this size are kept in their rows if nothing else is said: 32 KiB.
    public static let defaultInlineLimit = 32 << 10

    /// Options, each with its default.
    public init(
        memory: MemoryLimits = MemoryLimits(), disk: DiskLimits = DiskLimits(),
        accessGrain: Duration? = nil, inlineLimit: Int = CacheOptions.defaultInlineLimit,
        undecodable: UndecodablePolicy = .drop,
        onFullDisk: FullDiskPolicy = .evict,
        clearsOnMemoryPressure: Bool = true, clearsInBackground: Bool = false, keepsExpired: Duration = .zero,
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
    }
}
