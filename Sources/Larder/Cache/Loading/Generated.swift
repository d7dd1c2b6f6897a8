public import Foundation

/// The result of a load that says more than the value.
///
/// Every call that loads values takes a closure that returns this.
public struct Generated<Value> {
    enum Outcome {
        case value(GeneratedDraft<Value>)
        case notModified
        case none(MaxAge)
    }

    let outcome: Outcome

    /// A new value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - maxAge: An age of the entry's own, in place of the sub-cache's.
    ///   - cost: What it counts against the cost limit of the memory tier; the size of its payload if nil.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: Words by which `removeAll(tagged:)` finds the entry.
    public static func value(
        _ value: Value, maxAge: MaxAge? = nil, cost: Int? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) -> Generated {
        let draft = GeneratedDraft(value: value, maxAge: maxAge, cost: cost, extendedData: extendedData, tags: tags)
        return Generated(outcome: .value(draft))
    }

    /// The old value is good again, with everything that is stored with it: its age restarts.
    ///
    /// Its bytes are stored again as they are. So is a cost that was given.
    ///
    /// If there is no old value, the call throws ``CacheError/Code/invalidConfiguration``.
    public static var notModified: Generated { Generated(outcome: .notModified) }

    /// There is no value: callers get nil, and no closure runs for the key until `age` has passed or the key is written.
    ///
    /// An entry that is left for the key is removed. The key is absent for every read, for `contains`, `count` and iteration. The
    /// absence is kept in the memory of this process, for up to 10,000 keys of a cache.
    ///
    /// - Parameter age: The time for which no closure runs. Zero remembers nothing.
    public static func none(for age: MaxAge) -> Generated { Generated(outcome: .none(age)) }
}

extension Generated: Sendable where Value: Sendable {}
extension Generated.Outcome: Sendable where Value: Sendable {}
extension GeneratedDraft: Sendable where Value: Sendable {}

/// What a closure returned for a key.
struct LoadedValue<Value: Sendable>: Sendable {
    let generated: Generated<Value>
    /// The old value, if the closure got one.
    var old: GeneratedDraft<Value>?

    init(_ generated: Generated<Value>, old: GeneratedDraft<Value>? = nil) {
        self.generated = generated
        self.old = old
    }

    init(_ value: Value) { self.init(.value(value)) }
}

/// A value that was loaded and is to be stored.
struct GeneratedDraft<Value> {
    let value: Value
    var maxAge: MaxAge?
    var cost: Int?
    var extendedData: Data?
    var tags: Set<String> = []
    /// What the old entry had, where that is good again.
    var kept: KeptEntry?
}

/// What of an old entry goes into its new row as it is.
struct KeptEntry: Sendable {
    let facts: EntryFacts
    /// The bytes of the value, which an encoding of it anew need not be.
    let payload: Data
    /// What a call said that it costs in memory; nil if none did.
    let cost: Int?
}
