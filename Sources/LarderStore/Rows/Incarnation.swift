/// The rows of a cache under one id.
///
/// Purging a cache means switching to another incarnation.
package struct Incarnation: Hashable, Sendable {
    package let id: Int64
    /// The declaration of the latest open, whose age rule holds.
    package var cache: CacheDeclaration
    var rule: AgeRule { cache.ageRule }
    var limits = Limits()
    /// The milliseconds that expired rows stay.
    var keepsExpired: Int64 = 0

    /// The incarnation without limits and times below 0, which only a damaged or crafted row has.
    var withoutNonsense: Incarnation {
        var incarnation = self
        incarnation.limits = Limits(count: limits.count?.asLimit, size: limits.size?.asLimit)
        incarnation.keepsExpired = max(0, keepsExpired)
        return incarnation
    }

    /// Throws if a declaration has keys of another kind.
    func requireKeys(of declaration: CacheDeclaration) throws(StoreError) {
        guard let keyKind = cache.keyKind, let wanted = declaration.keyKind, keyKind != wanted else { return }
        throw StoreError(
            .otherKeys,
            "It has \(keyKind.name) as keys, and was opened with \(wanted.name). Use keys of the kind that it has, or open it"
                + " under another version.")
    }

    /// Returns the moment after which a row with an end is removed.
    func removal(at end: Int64) -> Int64 { end.addingSaturated(keepsExpired) }
}
