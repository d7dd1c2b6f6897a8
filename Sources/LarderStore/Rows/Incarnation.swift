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

/// A row of the table `cache`, or its second copy in the index.
struct IncarnationRow {
    var incarnation: Incarnation
    /// 0 for a live incarnation, 1 for a retired one, 2 for one that a migration fills.
    let state: Int64
    /// The checksum in the row; 0 if it has none.
    let checksum: Int64
    let openedAt: Int64

    /// A Boolean value that indicates whether the row fits its checksum, or has none and can be that of a cache.
    var isSound: Bool {
        checksum == incarnation.checksum(state: state)
            || checksum == 0 && incarnation.id > 0 && !incarnation.cache.name.isEmpty && (0...2).contains(state)
    }
}

extension Incarnation {
    /// The checksum of the incarnation's row, against damage.
    func checksum(state: Int64) -> Int64 {
        let rule = rule.stored
        let numbers = [id, rule.kind, rule.milliseconds, limits.count, limits.size, keepsExpired, state]
        // A row of an earlier step keeps its checksum.
        return RowChecksum.of(
            [cache.name, cache.version, cache.codec], numbers + (cache.keyKind.map { [$0.rawValue] } ?? []))
    }
}

/// The live incarnations of a store.
struct LiveIncarnations {
    private var byName: [ExactName: Incarnation] = [:]
    /// The declaration that was asked for last.
    private var last: (declaration: CacheDeclaration, incarnation: Incarnation)?

    var values: Dictionary<ExactName, Incarnation>.Values { byName.values }

    /// The incarnations by id, which damage can have given to two.
    var byID: [Int64: Incarnation] { [Int64: Incarnation](values.map { ($0.id, $0) }) { first, _ in first } }

    /// Returns the incarnation with an id; nil if there is none.
    func incarnation(withID id: Int64) -> Incarnation? { values.first { $0.id == id } }

    subscript(name: ExactName) -> Incarnation? {
        get { byName[name] }
        set { (byName[name], last) = (newValue, nil) }
    }

    /// Returns the incarnation of a declaration; nil if the handle is superseded.
    mutating func incarnation(of declaration: CacheDeclaration) -> Incarnation? {
        if last?.declaration === declaration { return last?.incarnation }
        guard let found = byName[declaration.identity.name], found.cache.identity == declaration.identity else {
            return nil
        }
        last = (declaration, found)
        return found
    }
}

/// The declaration under which a cache is opened.
///
/// It is an object: two uses of one declaration are compared by identity, without its strings.
@usableFromInline
package final class CacheDeclaration: Hashable, Sendable {
    package let identity: CacheIdentity
    package let ageRule: AgeRule
    /// Nil for a declaration that takes any keys.
    package let keyKind: KeyKind?

    package init(name: String, version: String, codec: String, ageRule: AgeRule, keyKind: KeyKind? = nil) {
        self.keyKind = keyKind
        identity = CacheIdentity(name: ExactName(name), version: ExactName(version), codec: ExactName(codec))
        self.ageRule = ageRule
    }

    @usableFromInline package var name: String { identity.name.text }
    package var version: String { identity.version.text }
    package var codec: String { identity.codec.text }

    @usableFromInline
    package static func == (a: CacheDeclaration, b: CacheDeclaration) -> Bool {
        a === b || a.identity == b.identity && a.ageRule == b.ageRule && a.keyKind == b.keyKind
    }

    @usableFromInline
    package func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

/// What makes two declarations those of one cache.
package struct CacheIdentity: Hashable, Sendable {
    package let name: ExactName
    package let version: ExactName
    package let codec: ExactName
}
