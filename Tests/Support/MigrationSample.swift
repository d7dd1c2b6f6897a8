package import Larder

/// A cache whose values say under which version they are.
package enum MigrationSample {
    package static let count = 400

    /// The value of a key under a version; every twentieth is a file.
    package static func value(_ key: Int, _ version: Int) -> String {
        "\(key) under \(version)" + String(repeating: ".", count: key % 20 == 0 ? 2_000 : 0)
    }

    /// Opens the cache; its entries are carried over from the version before.
    ///
    /// - Parameter before: Called before each conversion.
    package static func open(
        _ manager: CacheManager, _ version: Int, before: @escaping @Sendable () -> Void = {}
    ) throws -> Cache<Int, String> {
        try manager.cache(
            named: "carried", version: CacheVersion("\(version)"), maxAge: .unlimited,
            options: CacheOptions(inlineLimit: 1_000),
            migrations: [
                .from(CacheVersion("\(version - 1)"), as: String.self) { (key: Int, old: String, _) -> String? in
                    before()
                    return old == value(key, version - 1) ? value(key, version) : nil
                }
            ])
    }

    /// Creates the cache with all entries, each with a tag.
    package static func fill(_ manager: CacheManager, _ version: Int) throws {
        let cache = try open(manager, version)
        for key in 0..<count { try cache.setValue(value(key, version), forKey: key, tags: ["all"]) }
    }

    /// Returns the version of the store, and what is wrong with its entries: keys that are missing, or have another value.
    package static func check(_ manager: CacheManager) throws -> (version: Int, problems: [Int]) {
        guard let version = try manager.cacheInfo().first.flatMap({ Int($0.version.description) }) else {
            return (0, [])
        }
        let cache = try open(manager, version)
        let values = try cache.snapshot()
        let tagged = try Set(cache.keys(tagged: "all"))
        return (version, (0..<count).filter { values[$0] != value($0, version) || !tagged.contains($0) })
    }
}
