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

    /// The generation without limits and times below 0, which only a damaged or crafted row has.
    var withoutNonsense: Generation {
        var generation = self
        generation.limits = Limits(count: limits.count?.asLimit, size: limits.size?.asLimit)
        generation.keepsExpired = max(0, keepsExpired)
        return generation
    }

    /// Returns the moment after which a row with an end is removed.
    func removal(at end: Int64) -> Int64 { end.addingSaturated(keepsExpired) }
}
