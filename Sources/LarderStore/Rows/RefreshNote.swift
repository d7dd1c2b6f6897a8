/// What an entry has noted about the time at which its value is loaded again.
package enum RefreshNote: Hashable, Sendable {
    /// The milliseconds after the write, as the origin has said.
    case after(Int64)
    /// The milliseconds that its load took.
    case loadTime(Int64)

    /// Creates a note from the number that stands for it in a row.
    package init(number: Int64) { self = number < 0 ? .loadTime(-1 - number) : .after(number) }

    /// The number that stands for it in a row: that of a load time is negative.
    package var number: Int64 {
        switch self {
        case .after(let time): max(0, time)
        case .loadTime(let time): -1 - max(0, time)
        }
    }

    /// What memory keeps of it.
    package func hint(writtenAt: Int64) -> RefreshHint {
        switch self {
        case .after(let time):
            // One that never comes is none.
            writtenAt.addingSaturated(time) == .max ? .none : .init(moment: writtenAt + time, time: time)
        case .loadTime(let time): .init(moment: .max, time: time)
        }
    }
}

/// What memory knows of the refresh of an entry.
@usableFromInline
package struct RefreshHint: Hashable, Sendable {
    /// The moment from which the value is to be loaded again, as its origin has said; `.max` if it has not.
    package var moment: Int64
    /// The milliseconds from the write to the moment; without a moment those that the load took, -1 if they are not known.
    package var time: Int64

    package init(moment: Int64, time: Int64) { (self.moment, self.time) = (moment, time) }

    /// The hint of most entries.
    @usableFromInline package static let none = RefreshHint(moment: .max, time: -1)

    @usableFromInline package var isNone: Bool { time < 0 }

    /// The hint after the age of the entry has begun again.
    package func renewed(at now: Int64) -> RefreshHint {
        moment == .max ? self : RefreshHint(moment: now.addingSaturated(time), time: time)
    }
}
