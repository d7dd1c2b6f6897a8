public import Foundation

/// The result of a load that says more than the value.
public struct Generated<Value> {
    enum Outcome {
        case value(Value, EntryAttributes)
        /// A value for the callers alone.
        case unstored(Value, EntryAttributes)
        case notModified
        case absent(MaxAge)
    }

    let outcome: Outcome

    /// A new value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - cost: The cost of the value against the cost limit of the memory tier; if nil, the size of its payload.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` finds the entry.
    public static func value(
        _ value: Value, maxAge: MaxAge? = nil, cost: Int? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) -> Generated {
        let attributes = EntryAttributes(cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags)
        return Generated(outcome: .value(value, attributes))
    }

    /// The old value, whose age begins again; everything that is stored with it stays.
    ///
    /// If the entry was written or removed in the meantime, nothing is stored. If the closure got no old entry, the call
    /// throws ``CacheError/Code/invalidConfiguration``.
    public static var notModified: Generated { Generated(outcome: .notModified) }

    /// No value: callers get nil, and no closure runs for the key until `age` has passed or the key is written.
    ///
    /// The expired entry is removed. The absence is kept in the memory of this process, for up to 10,000 keys of a cache.
    ///
    /// - Parameter age: The time for which no closure runs. With zero nothing is remembered.
    public static func none(for age: MaxAge) -> Generated { Generated(outcome: .absent(age)) }
}

extension Generated: Sendable where Value: Sendable {}
extension Generated.Outcome: Sendable where Value: Sendable {}
