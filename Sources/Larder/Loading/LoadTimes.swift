internal import LarderStore

/// How many loads have taken how long, in fixed classes.
public struct LoadTimes: Hashable, Sendable {
    /// The times up to which loads are counted together, each twice the one before; what takes longer is counted last.
    public static let bounds: [Duration] = (0..<20).map { .microseconds(125 << $0) }

    /// The number of loads for each of ``bounds``, and of those that took longer.
    public internal(set) var counts = [Int](repeating: 0, count: bounds.count + 1)

    /// The time of all loads together.
    public internal(set) var total = Duration.zero

    init() {}

    /// The number of loads.
    public var count: Int { counts.reduce(0, +) }

    /// The time that a load took on average; nil if there was none.
    public var mean: Duration? { count == 0 ? nil : total / count }

    /// Returns the bound that a share of the loads has kept, such as 0.99; nil if there was no load, or if it took longer than all bounds.
    public func bound(ofShare share: Double) -> Duration? {
        if count == 0 { return nil }
        var rest = max(1, Int((Double(count) * (share >= 0 ? min(share, 1) : 0)).rounded(.up)))
        for (bound, count) in zip(Self.bounds, counts) {
            rest -= count
            if rest <= 0 { return bound }
        }
        return nil
    }

    /// The total, as the store keeps it.
    var microseconds: Int {
        get { Int(clamping: SystemClock.saturated(total / .microseconds(1))) }
        set { total = .microseconds(newValue) }
    }

    mutating func note(nanoseconds: Int64) {
        let time = max(0, nanoseconds)
        total += .nanoseconds(time)
        // The first bound is 125,000 nanoseconds.
        let units = UInt64(time) / 125_000 + (time % 125_000 == 0 ? 0 : 1)
        let place = units <= 1 ? 0 : UInt64.bitWidth - (units - 1).leadingZeroBitCount
        counts[min(place, Self.bounds.count)] += 1
    }
}

/// What is counted of loads, where they run.
struct LoadCounts: Hashable, Sendable {
    var (failures, timeouts) = (0, 0)
    var times = LoadTimes()
}
