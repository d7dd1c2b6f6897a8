internal import LarderStore

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
