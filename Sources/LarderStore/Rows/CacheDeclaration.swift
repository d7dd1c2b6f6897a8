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
