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
@usableFromInline
package struct CacheDeclaration: Hashable, Sendable {
    @usableFromInline package let name: String
    package let version: String
    package let codec: String
    package let ageRule: AgeRule

    package init(name: String, version: String, codec: String, ageRule: AgeRule) {
        (self.name, self.version, self.codec, self.ageRule) = (name, version, codec, ageRule)
    }

    /// Returns whether a handle with this declaration may use the generation.
    func fits(_ generation: Generation) -> Bool {
        identity == generation.cache.identity
    }

    var exactName: ExactName { ExactName(name) }

    package var identity: CacheIdentity {
        CacheIdentity(name: exactName, version: ExactName(version), codec: ExactName(codec))
    }
}

/// What makes two declarations those of one cache.
package struct CacheIdentity: Hashable, Sendable {
    package let name: ExactName
    package let version: ExactName
    package let codec: ExactName
}

/// A name that is compared as UTF-8 bytes: canonically equal strings are two names.
///
/// Safety: Bytes are read inside the call that lends them, and are not kept.
package struct ExactName: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (a: ExactName, b: ExactName) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
