/// What came of one key of a flight.
enum FlightOutcome<Output: Sendable>: Sendable {
    case value(Output)
    /// The generator gave nothing for this key.
    case absent
    case failure(any Error)
}

/// What a caller gets.
package struct FlightLanding<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    /// The values, and perhaps some of other keys.
    package internal(set) var values: [Key: Output] = [:]
    /// Keys for which a generator of somebody else's gave nothing: the caller's own was not asked yet.
    package internal(set) var unanswered: [Key] = []
}

/// What happened to a caller that wanted to join.
package enum FlightBoarding<Key: Hashable & Sendable>: Sendable {
    /// It waits, and if it leads a flight, it has to make the values of these keys.
    case aboard(leading: FlightID?, [Key])
    /// Waiting for this key would close a circle.
    case circle(Key)
    case cancelled
}

/// What is to be done after a call of the machine, once its lock was released.
package struct FlightEffects<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    /// Callers to wake, and what all of a group get.
    var groups: [(callers: [FlightCallerID], result: Result<FlightLanding<Key, Output>, any Error>)] = []
    /// Flights that are over: if their generation still runs, it is to be cancelled.
    package internal(set) var ended: [FlightID] = []
    /// What else must not be released under the lock.
    var outcomes: [FlightOutcome<Output>] = []
    var discarded: [FlightLanding<Key, Output>] = []
    var keys: [Key] = []

    /// Whether there is nothing to do and nothing to release.
    var isNothing: Bool {
        groups.isEmpty && ended.isEmpty && outcomes.isEmpty && discarded.isEmpty && keys.isEmpty
    }

    /// What each caller gets.
    package var landings: [(caller: FlightCallerID, Result<FlightLanding<Key, Output>, any Error>)] {
        groups.flatMap { group in group.callers.map { ($0, group.result) } }
    }
}
