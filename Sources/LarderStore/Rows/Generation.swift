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

extension [ExactName: Generation] {
    /// The generations by id, which damage can have given to two.
    var byID: [Int64: Generation] { [Int64: Generation](values.map { ($0.id, $0) }) { first, _ in first } }
}

/// A row of the table `cache`, or its second copy in the index.
struct GenerationRow {
    var generation: Generation
    /// 0 for a live generation, 1 for a retired one.
    let state: Int64
    /// The checksum in the row; 0 if it has none.
    let checksum: Int64
    let openedAt: Int64

    /// A Boolean value that indicates whether the row fits its checksum, or has none and can be that of a cache.
    var isSound: Bool {
        checksum == generation.checksum(state: state)
            || checksum == 0 && generation.id > 0 && !generation.cache.name.isEmpty && (0...1).contains(state)
    }
}

extension Generation {
    /// The checksum of the generation's row, against damage.
    func checksum(state: Int64) -> Int64 {
        let rule = rule.stored
        return RowChecksum.of(
            [cache.name, cache.version, cache.codec],
            [id, rule.kind, rule.milliseconds, limits.count, limits.size, keepsExpired, state])
    }
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
