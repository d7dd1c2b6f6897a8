public import Foundation

/// What a handle brings of its own, beside what it shares with the other handles on its sub-cache.
///
/// An object, since as a value it would be copied on the way of every read, closure by closure.
@usableFromInline
final class CacheTerms<Value: Sendable>: Sendable {
    /// By what it judges an age.
    @usableFromInline let age: AgeTerms

    /// The clock of the handle's manager, or nil for the system's.
    @usableFromInline let clock: (@Sendable () -> Date)?

    @usableFromInline let codec: ValueCodec<Value>
    let undecodable: UndecodablePolicy
    @usableFromInline let inlineLimit: Int
    let fileName: (@Sendable (String) -> String)?

    init(rule: AgeRule, clock: (@Sendable () -> Date)?, codec: ValueCodec<Value>, options: CacheOptions) {
        if let clock {
            age = AgeTerms(rule: rule, now: { SystemClock.milliseconds(of: clock()) })
        } else {
            age = AgeTerms(rule: rule)
        }
        self.clock = clock
        self.codec = codec
        undecodable = options.undecodable
        inlineLimit = options.inlineLimit
        fileName = options.fileName
    }

    /// How old an entry may be.
    @inlinable @inline(__always)
    var rule: AgeRule { age.rule }

    /// Now, exactly.
    @inlinable
    func now() -> Int64 { age.now() }

    /// Now, for a hit, by the clock that was injected; nil where it is the system's, or none is needed.
    @inlinable @inline(__always)
    func injectedNow() -> Int64? {
        guard let clock, !rule.isUnlimited else { return nil }
        return SystemClock.milliseconds(of: clock())
    }
}
