public import Foundation
internal import LarderLocks
package import LarderStore

/// The treatment of values by a ``ValueGenerator`` that have expired, or soon will.
public struct GenerationPolicy: Hashable, Sendable {
    /// The time after its expiration in which a value is still served, while one refresh runs in the background.
    public var staleFor: Duration

    /// The time after its expiration in which a value is still served if a load fails.
    public var staleOnError: Duration

    /// When a call refreshes a value in the background that has not expired; nil for never.
    ///
    /// An entry with a refresh time of its own is refreshed then instead; see
    /// ``Generated/value(_:maxAge:cost:extendedData:tags:refreshAfter:)``.
    public var refreshAhead: RefreshAhead?

    /// The time after which callers of a load get the old value, if there is one, while the load goes on; nil if they wait.
    ///
    /// The next callers get the new value once it is stored. The old value is served for ``staleFor`` or ``staleOnError`` after its
    /// expiration, whichever is longer, and for a day if both are zero.
    public var softTimeout: Duration?

    /// The time after which a load is ended; nil for none.
    ///
    /// Its callers get an old value as ``staleOnError`` allows, or throw ``CacheError/Code/timedOut``. Its task is cancelled, and
    /// nothing is stored, whatever it does then. A load that another policy has begun is left by the callers with this one.
    public var timeout: Duration?

    /// Creates a policy; by default an expired value is loaded again, and its callers wait.
    ///
    /// Calls of a generator throw ``CacheError/Code/invalidConfiguration`` for a negative time, a timeout of zero, and a share outside
    /// 0 to 1.
    public init(
        staleFor: Duration = .zero, staleOnError: Duration = .zero, refreshAhead: RefreshAhead? = nil,
        softTimeout: Duration? = nil, timeout: Duration? = nil
    ) {
        (self.staleFor, self.staleOnError, self.refreshAhead) = (staleFor, staleOnError, refreshAhead)
        (self.softTimeout, self.timeout) = (softTimeout, timeout)
    }

    var isPlain: Bool { longestStale == 0 && refreshAhead == nil }

    /// The milliseconds after its expiration in which a value may be served.
    var longestStale: Int64 {
        max(Self.milliseconds(staleFor), Self.milliseconds(staleOnError), Self.milliseconds(staleWhenLate))
    }

    /// The time after its expiration in which a value is served if a load takes long.
    var staleWhenLate: Duration {
        if softTimeout == nil { return .zero }
        let stale = max(staleFor, staleOnError)
        return stale > .zero ? stale : .seconds(86_400)
    }

    /// What bounds a call and the loads that it begins; nil if nothing does.
    func limits(
        hasOld: Bool, _ timekeeper: Timekeeper, timeout error: @escaping @Sendable () -> any Error,
        failed: @escaping LoadFailure
    ) -> LoadLimits? {
        let soft = hasOld ? softTimeout : nil
        if soft == nil && timeout == nil { return nil }
        return LoadLimits(soft: soft, hard: timeout, timekeeper, timeout: error, failed: failed)
    }

    /// Returns a closure that notes with each value how long its load took, if the policy has to know.
    package func noting<Row, Value>(
        _ nanoseconds: @escaping @Sendable () -> Int64,
        _ load: @escaping @Sendable ([Row]) async throws -> [Generated<Value>?]
    ) -> @Sendable ([Row]) async throws -> [Generated<Value>?] {
        if refreshAhead != .probabilistic { return load }
        return { rows in
            let start = nanoseconds()
            var results = try await load(rows)
            let time = (nanoseconds() - start) / 1_000_000
            for place in results.indices { results[place]?.note(loadTime: time) }
            return results
        }
    }

    func check(_ cache: @autoclosure () -> String) throws(CacheError) {
        let times = [staleFor, staleOnError, softTimeout ?? .zero]
        if times.allSatisfy({ $0 >= .zero }), timeout.map({ $0 > .zero }) != false,
            refreshAhead?.isPossible != false
        {
            return
        }
        throw CacheError(
            .invalidConfiguration,
            "The policy of a generator for cache \"\(cache())\" has a negative time, a timeout of zero or a share outside 0 to 1:"
                + " \(self).")
    }

    static func milliseconds(_ duration: Duration) -> Int64 {
        SystemClock.saturated(max(0, duration / .milliseconds(1)))
    }
}

/// When a value that has not expired is loaded again in the background.
public enum RefreshAhead: Hashable, Sendable {
    /// By the first call after a share of the age, from 0 to 1.
    case share(Double)

    /// By a call that is chosen at random: the longer the load of the value took, and the closer its end is, the likelier.
    ///
    /// On average that is as long before the end as the load took, and earlier where more calls come, so that few callers wait and few loads
    /// run (XFetch). The time is that of the load of this value by a generator with this policy, and is stored with it. Values
    /// without such a time are not refreshed ahead.
    case probabilistic

    var isPossible: Bool { if case .share(let share) = self { (0...1).contains(share) } else { true } }
}

extension RefreshAhead: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
    /// Creates a share from a literal, such as `0.8`.
    public init(floatLiteral share: Double) { self = .share(share) }

    /// Creates a share from a literal: `0` or `1`.
    public init(integerLiteral share: Int) { self = .share(Double(share)) }
}

/// What decides for one call whether values are due to be loaded again.
package struct RefreshRule: Sendable {
    private let ahead: RefreshAhead?
    /// How often the time of a load the call is early; drawn once, so that the call and its load decide the same.
    private let earliness: Double

    package init(_ ahead: RefreshAhead?) {
        self.ahead = ahead
        earliness = ahead == .probabilistic ? -log(.random(in: Double.leastNonzeroMagnitude...1)) : 0
    }

    /// - Parameter now: The moment, which is asked for only if it matters.
    package func isDue(_ times: RefreshTimes, at now: @autoclosure () -> Int64) -> Bool {
        if times.hint.moment != .max { return now() >= times.hint.moment }
        guard let ahead, times.end != .max else { return false }
        let (age, left) = (Double(times.age), Double(times.end) - Double(now()))
        switch ahead {
        case .share(let share): return age > 0 && age - left >= age * share
        case .probabilistic: return times.hint.time >= 0 && Double(times.hint.time) * earliness >= left
        }
    }
}

/// What says when an entry is to be loaded again.
package struct RefreshTimes: Sendable {
    /// The last moment at which it is served; `.max` if it never expires.
    let end: Int64
    /// The milliseconds from the write or the last access to the end.
    let age: Int64
    let hint: RefreshHint

    package init(end: Int64, age: Int64, hint: RefreshHint) { (self.end, self.age, self.hint) = (end, age, hint) }

    init(_ row: RowSummary) { self.init(end: row.end, age: row.age, hint: row.refresh) }
}

/// The result of a load that says more than the value.
public struct Generated<Value> {
    package enum Outcome {
        case value(Value, EntryAttributes)
        /// A value for the callers alone.
        case unstored(Value, EntryAttributes)
        case notModified
        case absent(MaxAge)
    }

    package let outcome: Outcome

    package init(outcome: Outcome) { self.outcome = outcome }

    /// A new value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - cost: The cost of the value against the cost limit of memory; if nil, the size of its payload.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` finds the entry.
    ///   - refreshAfter: The time after which the next call of a generator, or with a policy, loads the value again in the background,
    ///     whatever ``GenerationPolicy/refreshAhead`` says; nil to leave that to the policy. A negative time counts as zero.
    public static func value(
        _ value: Value, maxAge: MaxAge? = nil, cost: Int? = nil, extendedData: Data? = nil, tags: Set<String> = [],
        refreshAfter: Duration? = nil
    ) -> Generated {
        var attributes = EntryAttributes(cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags)
        attributes.refresh = refreshAfter.map { .after(GenerationPolicy.milliseconds($0)) }
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

extension Generated {
    /// Stores with a value how long its load took, unless its origin has said when it is loaded again.
    fileprivate mutating func note(loadTime: Int64) {
        guard case .value(let value, var attributes) = outcome, attributes.refresh == nil else { return }
        attributes.refresh = .loadTime(loadTime)
        self = Generated(outcome: .value(value, attributes))
    }
}

extension Generated: Sendable where Value: Sendable {}
extension Generated.Outcome: Sendable where Value: Sendable {}
