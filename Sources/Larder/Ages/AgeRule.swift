/// The rule by which an entry expires: the same for reads, sweeps, counts, iteration, memory and disk.
///
/// All moments are milliseconds since 1970. An entry exactly as old as the maximum is served, an older one is not.
@usableFromInline
package struct AgeRule: Hashable, Sendable {
    /// The greatest age that is served, in milliseconds; `.max` is no limit, 0 or less means that every entry has
    /// expired.
    @usableFromInline package let maximum: Int64

    /// The last moment at which anything is served; `.max` is none.
    @usableFromInline package let deadline: Int64

    /// A Boolean value that indicates whether the age runs from the last read instead of the last write.
    @usableFromInline package let isSliding: Bool

    package init(maximum: Int64 = .max, deadline: Int64 = .max, isSliding: Bool = false) {
        self.maximum = max(0, maximum)
        self.deadline = deadline
        // Without an age there is nothing to slide; so equal rules are equal values.
        self.isSliding = isSliding && maximum > 0 && maximum < .max
    }

    /// A Boolean value that indicates whether no clock is needed to know that an entry is served.
    @inlinable package var isUnlimited: Bool { maximum == .max && deadline == .max }

    /// A Boolean value that indicates whether an entry has to store when its age began.
    @inlinable package var needsStart: Bool { maximum > 0 && maximum < .max }

    /// Returns whether an entry whose age began at `start` has expired at `now`.
    ///
    /// A start in the future counts as now; a caller that finds one also stores that (``corrected(_:now:)``).
    @inlinable
    package func isExpired(start: Int64, now: Int64) -> Bool {
        if now > deadline || maximum <= 0 { return true }
        return maximum < .max && now > start && UInt64(bitPattern: now &- start) > UInt64(bitPattern: maximum)
    }

    /// Returns the last moment at which an entry whose age began at `start` is served; nil if there is none.
    package func end(start: Int64) -> Int64? {
        if isUnlimited { return nil }
        if maximum <= 0 { return start }
        let (end, isTooLate) = start.addingReportingOverflow(maximum)
        return min(deadline, isTooLate ? .max : end)
    }

    /// The age of which the pause between two sweeps is a share; 0 if there is only a last moment.
    package var pauseAge: Int64 { maximum < .max ? maximum : 0 }

    /// Returns the start to use after the first read of an entry.
    ///
    /// A start in the future means that the clock was set back: the age begins again, at the correction.
    @inlinable
    package func corrected(_ start: Int64, now: Int64) -> Int64 {
        min(start, now)
    }

    /// Returns whether a clock that lags up to `lag` milliseconds cannot decide, so that an exact one is needed.
    @inlinable
    package func isUndecided(start: Int64, coarse: Int64, lag: Int64) -> Bool {
        if coarse < start || isSliding { return true }
        return isExpired(start: start, now: coarse) != isExpired(start: start, now: coarse &+ lag)
    }
}
