internal import Foundation
internal import LarderStore

/// A step that carries the entries of an older version over, where an opening would purge them.
///
/// ```swift
/// let articles: Cache<Int, Article> = try manager.cache(
///     named: "articles", version: "4", maxAge: .days(7),
///     migrations: [
///         .from("3", as: ArticleV3.self) { Article(title: $0.title, byline: $0.author) },
///         .from("2", as: ArticleV2.self, to: "3", as: ArticleV3.self) { ArticleV3($0) },
///         .keeping("3.1"),
///     ])
/// ```
///
/// An entry keeps its key, its time, its own age, its pin, its cost, its extended data, its tags and its last access. If the
/// cache is opened with a rule, tags are what that gives for the new value, and so are cost and age where it gives them. An
/// entry for which a closure returns nil or throws is dropped, and so is one that does not decode.
///
/// The closures run while other writers go on, and more than once for an entry that changes in the meantime. The last of those
/// are converted while other writers wait, so a closure must not use the manager.
public struct CacheMigration<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    let version: CacheVersion
    /// The version to which the step leads; nil for the one that is opened.
    let target: CacheVersion?
    /// Nil if the values stay as they are.
    let conversion: Conversion?

    /// How the values of one version become those of the next one.
    struct Conversion: Sendable {
        let old: ObjectIdentifier
        let new: ObjectIdentifier
        /// Returns how the old values are read in a cache with a codec; nil if no codec is known for them.
        let reader: @Sendable (ValueCodec<Value>) -> Reader?
        /// Returns nil if the entry is dropped.
        let convert: @Sendable (Key, Any, EntryHeader) throws -> Any?
    }

    struct Reader: Sendable {
        let codec: String
        let decode: @Sendable (Data) throws -> Any
    }

    private init(_ version: CacheVersion, to target: CacheVersion?, _ conversion: Conversion?) {
        (self.version, self.target, self.conversion) = (version, target, conversion)
    }

    /// - Parameter builtIn: The built-in codecs of the old values, of which one is used if there is no other.
    private init<Old: SendableMetatype, New: SendableMetatype>(
        _ version: CacheVersion, to target: CacheVersion?, _ codec: ValueCodec<Old>?, builtIn: [ValueCodec<Old>],
        _ convert: @escaping @Sendable (Key, Old, EntryHeader) throws -> New?
    ) {
        let conversion = Conversion(old: ObjectIdentifier(Old.self), new: ObjectIdentifier(New.self)) { valueCodec in
            guard let codec = codec ?? valueCodec.like(builtIn) else { return nil }
            return Reader(codec: codec.identifier) { try codec.decode(codec.undone($0)) }
        } convert: { key, value, header in
            guard let old = value as? Old else { return nil }
            return try convert(key, old, header).map { $0 as Any }
        }
        self.init(version, to: target, conversion)
    }

    /// A step to the version that is opened.
    ///
    /// - Parameters:
    ///   - version: The older version.
    ///   - type: The type that its values had.
    ///   - codec: Their codec; nil for the one with which the cache is opened. A codec of your own must be given.
    ///   - convert: Returns the value as it is now; nil drops the entry.
    public static func from<Old: Codable & SendableMetatype>(
        _ version: CacheVersion, as type: Old.Type, codec: ValueCodec<Old>? = nil,
        _ convert: @escaping @Sendable (Old) throws -> Value?
    ) -> CacheMigration {
        CacheMigration(version, to: nil, codec, builtIn: ValueCodec<Old>.builtIn) { _, old, _ in try convert(old) }
    }

    /// A step to the version that is opened, which may look at the key and at the metadata of an entry.
    ///
    /// - Parameters:
    ///   - version: The older version.
    ///   - type: The type that its values had.
    ///   - codec: Their codec; nil for the one with which the cache is opened. A codec of your own must be given.
    ///   - convert: Returns the value as it is now; nil drops the entry.
    public static func from<Old: Codable & SendableMetatype>(
        _ version: CacheVersion, as type: Old.Type, codec: ValueCodec<Old>? = nil,
        _ convert: @escaping @Sendable (Key, Old, EntryMetadata) throws -> Value?
    ) -> CacheMigration {
        CacheMigration(version, to: nil, codec, builtIn: ValueCodec<Old>.builtIn) {
            try convert($0, $1, EntryMetadata($2))
        }
    }

    /// A step from values that are not `Codable`, with their codec.
    ///
    /// - Parameters:
    ///   - version: The older version.
    ///   - type: The type that its values had.
    ///   - codec: Their codec.
    ///   - convert: Returns the value as it is now; nil drops the entry.
    public static func from<Old: SendableMetatype>(
        _ version: CacheVersion, as type: Old.Type, codec: ValueCodec<Old>,
        _ convert: @escaping @Sendable (Old) throws -> Value?
    ) -> CacheMigration {
        CacheMigration(version, to: nil, codec, builtIn: []) { _, old, _ in try convert(old) }
    }

    /// A step between two older versions, which another step leads on.
    ///
    /// - Parameters:
    ///   - version: The older version.
    ///   - type: The type that its values had.
    ///   - target: The version to which the step leads.
    ///   - newType: The type of the values under it.
    ///   - codec: The codec of the old values; nil for the one with which the cache is opened.
    ///   - convert: Returns the value under the later version; nil drops the entry.
    public static func from<Old: Codable & SendableMetatype, New: SendableMetatype>(
        _ version: CacheVersion, as type: Old.Type, to target: CacheVersion, as newType: New.Type,
        codec: ValueCodec<Old>? = nil, _ convert: @escaping @Sendable (Old) throws -> New?
    ) -> CacheMigration {
        CacheMigration(version, to: target, codec, builtIn: ValueCodec<Old>.builtIn) { _, old, _ in try convert(old) }
    }

    /// A step from a version whose values have the same form.
    ///
    /// Nothing is rewritten: the step takes as long for a million entries as for one. No rule of attributes is asked; to
    /// tag what an older version has stored, convert each value into itself.
    ///
    /// - Parameter version: The older version.
    public static func keeping(_ version: CacheVersion) -> CacheMigration { CacheMigration(version, to: nil, nil) }
}

extension ValueCodec where Value: Codable {
    fileprivate static var builtIn: [ValueCodec] { [.standard, .json, .propertyList] }
}

extension ValueCodec {
    /// Returns the codec of another type that has this one's format and transforms, if the format is built in.
    fileprivate func like<Old>(_ builtIn: [ValueCodec<Old>]) -> ValueCodec<Old>? {
        // An own name with a plus sign is escaped.
        let format = identifier.prefix { $0 != "+" }
        // The default is another format for `Data`.
        let place = ["cbor": 0, "data": 0, "json": 1, "plist": 2][format]
        return place.map { transforms.reduce(builtIn[$0]) { $0.then($1) } }
    }
}

/// The result of a migration of values, see ``CacheEvent/Kind/migrated(_:)``.
public struct MigrationReport: Hashable, Sendable {
    /// The name of the cache.
    public let cacheName: String

    /// The version under which the entries were written.
    public let oldVersion: CacheVersion

    /// The version under which they are now.
    public let version: CacheVersion

    /// The number of entries whose values were converted; nil if all stayed as they were.
    public let converted: Int?

    /// The number of entries that were dropped, because a closure returned nil or threw, or because they did not decode.
    public let dropped: Int

    /// The first twenty keys of those, as text.
    public let firstDropped: [String]

    init(_ result: MigrationResult) {
        (cacheName, converted, dropped) = (result.cache, result.converted, result.dropped)
        (oldVersion, version) = (CacheVersion(result.oldVersion), CacheVersion(result.version))
        firstDropped = result.firstDropped.map(\.name)
    }
}

extension Reporter {
    func report(_ migration: MigrationReport) {
        var text =
            "The entries of the cache \"\(migration.cacheName)\" were carried over from version"
            + " \"\(migration.oldVersion)\" to \"\(migration.version)\""
        text += migration.converted.map { ": \($0) were converted, \(migration.dropped) dropped." } ?? " as they were."
        if migration.dropped > 0 {
            text += " The first keys that were dropped: \(migration.firstDropped.joined(separator: ", "))."
        }
        report(
            CacheEvent(.migrated(migration), cacheName: migration.cacheName, message: text),
            migration.dropped > 0 ? .warning : .info)
    }
}
