/// The rows of a cache under one id.
///
/// Purging a cache means switching to another generation.
package struct Generation: Hashable, Sendable {
    package let id: Int64
    /// The declaration of the latest open, whose age rule holds.
    package var cache: CacheDeclaration
    var rule: AgeRule { cache.ageRule }
    var limits = Limits()
    /// The milliseconds that expired rows stay.
    var keepsExpired: Int64 = 0

    /// Returns the moment after which a row with an end is removed.
    func removal(at end: Int64) -> Int64 { end.addingSaturated(keepsExpired) }
}

/// The declaration under which a cache is opened.
package struct CacheDeclaration: Hashable, Sendable {
    package let name: String
    package let version: String
    package let codec: String
    package let ageRule: AgeRule

    package init(name: String, version: String, codec: String, ageRule: AgeRule) {
        (self.name, self.version, self.codec, self.ageRule) = (name, version, codec, ageRule)
    }

    /// Returns whether a handle with this declaration may use the generation.
    func fits(_ generation: Generation) -> Bool {
        name == generation.cache.name && codec == generation.cache.codec && version == generation.cache.version
    }
}
