public import Foundation

/// What a generator gives back when it says more than the value; see ``Cache/entry(forKey:generate:)``.
public struct Generated<Value> {
    enum Outcome {
        case value(Value, MaxAge?, cost: Int?, Data?)
        case notModified
    }

    let outcome: Outcome

    /// A new value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - maxAge: An age of the entry's own, in place of the sub-cache's.
    ///   - cost: What it counts against the cost limit of the memory tier; the size of its payload if nil.
    ///   - extendedData: Bytes to store beside the value.
    public static func value(
        _ value: Value, maxAge: MaxAge? = nil, cost: Int? = nil, extendedData: Data? = nil
    ) -> Generated {
        Generated(outcome: .value(value, maxAge, cost: cost, extendedData))
    }

    /// The old value is good again, with everything that is stored beside it: its age restarts.
    ///
    /// Its bytes are stored again as they are. So is a cost that was given.
    public static var notModified: Generated { Generated(outcome: .notModified) }
}

extension Generated: Sendable where Value: Sendable {}
extension Generated.Outcome: Sendable where Value: Sendable {}

/// A value that was made and is to be stored.
struct GeneratedDraft<Value: Sendable>: Sendable {
    let value: Value
    var maxAge: MaxAge?
    var cost: Int?
    var extendedData: Data?
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
