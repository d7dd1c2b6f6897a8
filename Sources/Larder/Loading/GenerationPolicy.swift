/// The treatment of values by a ``ValueGenerator`` that have expired, or soon will.
public struct GenerationPolicy: Hashable, Sendable {
    /// The time after its expiration in which a value is still served, while one refresh runs in the background.
    public var staleFor: Duration

    /// The time after its expiration in which a value is still served if a load fails.
    public var staleOnError: Duration

    /// The share of its age, from 0 to 1, after which a value is refreshed in the background by the next call; nil for never.
    public var refreshAhead: Double?

    /// Creates a policy; by default an expired value is loaded again, and its callers wait.
    ///
    /// Calls of a generator throw ``CacheError/Code/invalidConfiguration`` for a negative time, and a share outside 0 to 1.
    public init(staleFor: Duration = .zero, staleOnError: Duration = .zero, refreshAhead: Double? = nil) {
        (self.staleFor, self.staleOnError, self.refreshAhead) = (staleFor, staleOnError, refreshAhead)
    }

    var isPlain: Bool { longestStale == 0 && refreshAhead == nil }

    /// The milliseconds after its expiration in which a value may be served.
    var longestStale: Int64 { max(Self.milliseconds(staleFor), Self.milliseconds(staleOnError)) }

    func check(_ cache: @autoclosure () -> String) throws(CacheError) {
        if staleFor >= .zero, staleOnError >= .zero, refreshAhead.map({ (0...1).contains($0) }) != false { return }
        throw CacheError(
            .invalidConfiguration,
            "The policy of a generator for cache \"\(cache())\" has a negative time or a share outside 0 to 1: \(self)."
        )
    }

    static func milliseconds(_ duration: Duration) -> Int64 {
        SystemClock.saturated(max(0, duration / .milliseconds(1)))
    }
}
