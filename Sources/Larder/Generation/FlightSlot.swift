/// One key of one flight.
///
/// What single flight keeps per caller names slots and not keys, so that it is of no generic type: code that is compiled
/// for every type of key looks such types up as it runs, which cost a caller four fifths of its time.
struct FlightSlotID: Hashable, Comparable {
    let number: Int

    static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

struct FlightSlot {
    /// Where a flight stands with one of its keys.
    enum Standing {
        /// At work.
        case underway
        /// At work on what will not be stored, since somebody wrote the key.
        case overtaken
        /// Storing, the only one that may.
        case storing
        /// Not the one that may store: it lands with what that one stores, or else with its own.
        case deferred
    }

    let flight: FlightID
    var standing = Standing.underway
    var callers: Set<FlightCallerID> = []
}

/// A flight that has not ended.
struct FlightRecord {
    /// Its keys that have not landed.
    var slots: Set<FlightSlotID> = []
    /// Waits on any of its keys.
    var waits = 0
    /// Whether it goes on without callers.
    var isHeld: Bool

    /// The slots in the order of the call.
    var slotsInOrder: [FlightSlotID] { slots.count == 1 ? Array(slots) : slots.sorted() }
}

/// A caller that waits.
struct FlightCallerRecord {
    let chain: [FlightID]
    let manner: FlightCallerManner
    /// The flight that it leads.
    let led: FlightID?
    /// What it waits for: the one slot, or for a call for many keys the others.
    var only: FlightSlotID?
    var others: Set<FlightSlotID> = []
    /// Whether its call is for several keys, so that it gathers their values.
    let gathers: Bool

    mutating func wait(for slot: FlightSlotID) {
        if gathers { others.insert(slot) } else { only = slot }
    }

    /// Whether this was the last one.
    mutating func stopWaiting(for slot: FlightSlotID) -> Bool {
        if gathers { others.remove(slot) } else { only = nil }
        return others.isEmpty && only == nil
    }

    var waits: [FlightSlotID] { only.map { [$0] } ?? Array(others) }
}
