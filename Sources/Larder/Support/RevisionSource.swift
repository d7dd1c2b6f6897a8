internal import Synchronization

/// Numbers the writes: each greater than the one before, near to the time, and unlike those of any other process.
///
/// Milliseconds since 2024, then ten bits that count within one, then eleven that this store drew by lot. A clock that
/// stands or goes back costs the order nothing, since a number is always greater than the last.
@usableFromInline
package final class RevisionSource: Sendable {
    /// Begins at the exact time: the coarse one may stand where it stood when a store that was closed just now wrote.
    private let last = Atomic(max(0, SystemClock.now() - start) << 10)
    private let lot = Int64.random(in: 0..<2047)

    private static let start: Int64 = 1_704_067_200_000

    /// What a row says beyond this number is not believed: the next ones have to be greater, and still be numbers.
    static let highest: Int64 = 1 << 62

    package init() {}

    /// A number greater than every one before and than `floor`.
    package func next(after floor: Int64 = 0) -> Int64 {
        let moment = max(max(0, SystemClock.coarseNow() - Self.start) << 10, (min(floor, Self.highest) >> 11) + 1)
        var seen = last.load(ordering: .relaxed)
        while true {
            let number = max(seen + 1, moment)
            let (isDone, current) = last.compareExchange(expected: seen, desired: number, ordering: .relaxed)
            if isDone { return number << 11 | lot }
            seen = current
        }
    }

    /// What the numbers of a moment by the system's clock come up to.
    static func end(of moment: Int64) -> Int64 { (max(0, moment - start) << 10 | 1023) << 11 | 2047 }

    /// A number for a use at a moment by the system's clock: greater than every one given before, and than those that
    /// other processes gave by then.
    @usableFromInline
    package func ofUse(at moment: Int64) -> Int64 {
        max(last.load(ordering: .relaxed), max(0, moment - Self.start) << 10) << 11 | 2047
    }
}
