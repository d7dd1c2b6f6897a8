internal import LarderLocks

/// The moment by which a sweep decides what has expired.
///
/// It is the clock's, unless the clock ran ahead of the time that has passed in this process. Then an age that began
/// before the clock was set ahead is counted by the time that has passed, and any later one by the clock.
package struct SweepMoment: Hashable, Sendable {
    /// Milliseconds since 1970, by the clock.
    package let wall: Int64

    /// The moment that follows from the time that has passed; the clock's if that is not contradicted.
    let elapsed: Int64

    /// The clock's first moment, as far as known, after it was set ahead; `.max` if it was not.
    let jump: Int64

    /// The moment of a clock that nothing contradicts.
    package init(_ wall: Int64) { self.init(wall: wall, elapsed: wall, jump: .max) }

    init(wall: Int64, elapsed: Int64, jump: Int64) {
        self.wall = wall
        self.elapsed = elapsed
        self.jump = jump
    }

    /// A Boolean value that indicates whether the clock ran ahead of the time that has passed.
    package var isContradicted: Bool { elapsed != wall }

    /// The moment that counts for an age that began at `start`.
    package func now(from start: Int64) -> Int64 { start >= jump ? wall : elapsed }

    /// The moment of another clock that is ahead of the time by as much.
    func moved(to wall: Int64) -> SweepMoment {
        let difference = wall.subtractingSaturated(self.wall)
        return SweepMoment(
            wall: wall, elapsed: elapsed.addingSaturated(difference),
            jump: jump == .max ? .max : jump.addingSaturated(difference))
    }
}

/// Compares the clock with the time that has passed, so that a clock that is set far ahead deletes nothing.
///
/// It starts with its owner, and knows nothing of the time before: a clock that was wrong at that moment is trusted.
package final class SweepClock: Sendable {
    /// The number of milliseconds by which the clock may run ahead between two sweeps.
    ///
    /// Clocks that are set by the network are moved by less. A clock that is moved by more delays sweeps by as much.
    static let tolerance: Int64 = 60_000

    private struct Anchor: Sendable {
        var wall: Int64
        var uptime: Int64
    }

    private let timekeeper: Timekeeper

    /// Two moments at which the clock was trusted, the later one after it was set ahead; no other lock is taken under
    /// it.
    private let anchors: Mutex<(trusted: Anchor, jump: Anchor?)>

    package init(_ timekeeper: Timekeeper) {
        self.timekeeper = timekeeper
        anchors = Mutex((Anchor(wall: timekeeper.now(), uptime: timekeeper.uptime()), nil))
    }

    /// The moment by which a sweep decides now.
    package func moment() -> SweepMoment {
        let present = Anchor(wall: timekeeper.now(), uptime: timekeeper.uptime())
        return anchors.withLock { anchors in
            let elapsed = Self.moment(of: present, since: anchors.trusted)
            guard present.wall.subtractingSaturated(elapsed) > Self.tolerance else {
                anchors = (present, nil)
                return SweepMoment(present.wall)
            }
            // Set ahead again, or back in part: only ages that begin from now on use it.
            let isSteady = anchors.jump.map {
                (-Self.tolerance...Self.tolerance).contains(
                    present.wall.subtractingSaturated(Self.moment(of: present, since: $0)))
            }
            if isSteady != true { anchors.jump = present }
            return SweepMoment(wall: present.wall, elapsed: elapsed, jump: anchors.jump?.wall ?? present.wall)
        }
    }

    /// Returns the moment by which a sweep decides now that uses another clock.
    package func moment(at wall: Int64) -> SweepMoment { moment().moved(to: wall) }

    private static func moment(of present: Anchor, since anchor: Anchor) -> Int64 {
        anchor.wall.addingSaturated(present.uptime.subtractingSaturated(anchor.uptime))
    }
}
