/// How a ``ValueGenerator`` treats values that are over, or will soon be.
public struct GenerationPolicy: Hashable, Sendable {
    /// How long after its end a value is served still, while one refresh runs in the background.
    public var staleFor: Duration

    /// How long after its end a value is served still when making another one fails.
    public var staleOnError: Duration

    /// The share of its age after which a value is refreshed in the background, at the next call that gets it; nil for never.
    ///
    /// From 0, at every call, to 1, at the last moment of the age.
    public var refreshAhead: Double?

    /// A policy; with the defaults a value that is over is made anew, and its callers wait.
    ///
    /// A negative or undefined number, and a share above 1, is refused with an error by the generator's calls.
    public init(staleFor: Duration = .zero, staleOnError: Duration = .zero, refreshAhead: Double? = nil) {
        self.staleFor = staleFor
        self.staleOnError = staleOnError
        self.refreshAhead = refreshAhead
    }

    /// Whether it asks for nothing.
    var isPlain: Bool { staleFor == .zero && staleOnError == .zero && refreshAhead == nil }

    /// For how long after its end an entry may be served, in milliseconds.
    var longestStale: Int64 { max(Self.milliseconds(staleFor), Self.milliseconds(staleOnError)) }

    static func milliseconds(_ duration: Duration) -> Int64 {
        SystemClock.saturated(max(0, duration / .milliseconds(1)))
    }

    func check(_ cache: String) throws(CacheError) {
        let isShare = refreshAhead.map { (0...1).contains($0) } ?? true
        if staleFor >= .zero, staleOnError >= .zero, isShare { return }
        throw CacheError(
            .invalidConfiguration,
            "The policy of a generator for cache \"\(cache)\" has a negative or undefined number, or a share above 1:"
                + " \(self).")
    }
}
