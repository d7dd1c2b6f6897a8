/// What a tier has done with its server since it was created, on both of its connections.
public struct RedisStatistics: Hashable, Sendable {
    /// The number of connections that were made.
    public internal(set) var connections = 0

    /// The number of calls that were sent; each has one or more commands.
    public internal(set) var calls = 0

    /// The bytes that were sent, without what encryption adds, and those that have arrived.
    public internal(set) var (sentBytes, receivedBytes) = (0, 0)

    /// The number of calls that failed because there was no connection.
    public internal(set) var unavailable = 0

    /// The number of calls that were sent, and lost their connection or had no reply in time.
    public internal(set) var lost = 0

    /// The number of calls that were refused on this side, because too many waited for the server.
    public internal(set) var overLimit = 0

    /// The number of connections that were ended because the server has answered slowly.
    public internal(set) var slowdowns = 0

    /// The number of errors that the server has replied with, by their first word, such as `OOM` or `NOPERM`.
    public internal(set) var refusals: [String: Int] = [:]

    /// The times of calls for which the server did not have to wait.
    public internal(set) var latency = RedisLatency()

    static func + (a: Self, b: Self) -> Self {
        var sum = a
        sum.connections += b.connections
        sum.calls += b.calls
        sum.sentBytes += b.sentBytes
        sum.receivedBytes += b.receivedBytes
        sum.unavailable += b.unavailable
        sum.lost += b.lost
        sum.overLimit += b.overLimit
        sum.slowdowns += b.slowdowns
        sum.refusals.merge(b.refusals, uniquingKeysWith: +)
        for (place, count) in b.latency.counts.enumerated() { sum.latency.counts[place] += count }
        return sum
    }

    /// Counts an error of the server.
    mutating func note(refusal message: String) {
        let word = message.prefix { $0.isASCII && $0.isUppercase }
        refusals[word.isEmpty ? "ERR" : String(word), default: 0] += 1
    }
}

/// How many calls have taken how long, from their sending to their last reply.
public struct RedisLatency: Hashable, Sendable {
    /// The times up to which calls are counted together, each twice the one before; what takes longer is counted last.
    public static let bounds: [Duration] = (0..<20).map { .microseconds(16 << $0) }

    /// The number of calls for each of ``bounds``, and of those that took longer.
    public internal(set) var counts = [Int](repeating: 0, count: bounds.count + 1)

    package init() {}

    /// The number of calls.
    public var count: Int { counts.reduce(0, +) }

    /// Returns the bound that a share of the calls has kept, such as 0.99; nil if there were no calls, or if it took longer than all bounds.
    public func bound(ofShare share: Double) -> Duration? {
        var rest = Int((Double(count) * (share >= 0 ? min(share, 1) : 0)).rounded(.up))
        if count == 0 { return nil }
        for (bound, count) in zip(Self.bounds, counts) {
            rest -= count
            if rest <= 0 { return bound }
        }
        return nil
    }

    package mutating func note(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        let microseconds = UInt64(clamping: seconds) &* 1_000_000 &+ UInt64(clamping: attoseconds / 1_000_000_000_000)
        // 16 microseconds are the first bound, and 2^4.
        let place = microseconds <= 16 ? 0 : UInt64.bitWidth - (microseconds - 1).leadingZeroBitCount - 4
        counts[min(place, Self.bounds.count)] += 1
    }
}
