/// The rules of single flight: who makes a value, who waits for it, and who may store it.
///
/// It takes no lock, runs nothing, and knows no time: each call tells it what happened, and it answers with what is to be
/// done. A *flight* is one run of a generator, for one key or for several; a *caller* waits for one flight or for several.
/// One key and many keys share the path.
///
/// Usually one flight is underway for a key. There are more where a synchronous caller inside a task could not wait for an
/// asynchronous generation: whoever stores first then decides for all. Whatever else writes a key *overtakes* its flights:
/// they land with what they made, and leave it unstored, and nobody joins them any more.
package struct FlightMachine<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    var flights: [FlightID: FlightRecord] = [:]
    var slots: [FlightSlotID: FlightSlot] = [:]
    var callers: [FlightCallerID: FlightCallerRecord] = [:]
    /// Callers that were cancelled before they joined.
    var departed: Set<FlightCallerID> = []
    private var lastSlot = 0

    /// The flights at work on a key that were not overtaken, in the order of their beginning.
    var underway: [Key: [FlightSlotID]] = [:]
    /// The key of every slot.
    var keys: [FlightSlotID: Key] = [:]
    /// What deferred flights that are through have made themselves.
    var own: [FlightSlotID: FlightOutcome<Output>] = [:]
    /// What callers that gather have so far.
    var gathered: [FlightCallerID: FlightLanding<Key, Output>] = [:]

    package init() {}

    /// Whether no key has a flight that could still store.
    package var isIdle: Bool { underway.isEmpty }

    /// Whether the flight has not ended.
    package func isFlying(_ flight: FlightID) -> Bool { flights[flight] != nil }

    /// How many callers wait.
    package var callerCount: Int { callers.count }

    /// A caller wants values for `keys`, each named once: it joins the flights that are underway for them, and leads one for
    /// the rest.
    ///
    /// It runs inside the flights of `chain`.
    package mutating func join(
        _ keys: [Key], as id: FlightCallerID, in chain: [FlightID], _ manner: FlightCallerManner,
        _ graph: inout FlightGraph
    ) -> FlightBoarding<Key> {
        if !departed.isEmpty, departed.remove(id) != nil { return .cancelled }
        let isPoolHeld = manner == .blocksPool || manner == .blocks && !chain.isEmpty && graph.holdsPool(chain)
        var joined: [FlightSlotID] = []
        var led: [Key] = []
        for key in keys {
            switch choice(underway[key] ?? [], in: chain, isPoolHeld, graph) {
            case .slot(let slot): joined.append(slot)
            case .none: led.append(key)
            case .circle: return .circle(key)
            }
        }
        var leading: FlightID?
        if !led.isEmpty {
            let isAsync = manner == .suspends
            // A synchronous generation runs on its caller's thread, and nobody can stop it.
            let flight = begin(led, isAsync: isAsync, isHeld: !isAsync, &graph)
            leading = flight
            joined += flights[flight]?.slotsInOrder ?? []
        }
        callers[id] = FlightCallerRecord(chain: chain, manner: manner, led: leading, gathers: keys.count != 1)
        for slot in joined { wait(id, for: slot, &graph) }
        return .aboard(leading: leading, led)
    }

    private enum Choice {
        case slot(FlightSlotID), none, circle
    }

    private func choice(
        _ candidates: [FlightSlotID], in chain: [FlightID], _ isPoolHeld: Bool, _ graph: FlightGraph
    ) -> Choice {
        var choice = Choice.none
        for slot in candidates {
            guard let flight = slots[slot]?.flight else { continue }
            if graph.isWaiting(flight, forAnyOf: chain) { return .circle }
            if case .none = choice, !isPoolHeld || !graph.needsPool(flight) { choice = .slot(slot) }
        }
        return choice
    }

    /// Begins a flight that nobody waits for yet, for those of `keys` that have none underway.
    ///
    /// It goes on without callers, and others may join it.
    package mutating func begin(_ keys: [Key], _ graph: inout FlightGraph) -> (FlightID, [Key])? {
        let led = keys.filter { underway[$0] == nil }
        return led.isEmpty ? nil : (begin(led, isAsync: true, isHeld: true, &graph), led)
    }

    private mutating func begin(
        _ keys: [Key], isAsync: Bool, isHeld: Bool, _ graph: inout FlightGraph
    ) -> FlightID {
        let flight = graph.begin(isAsync: isAsync)
        var record = FlightRecord(isHeld: isHeld)
        for key in keys {
            lastSlot += 1
            let slot = FlightSlotID(number: lastSlot)
            record.slots.insert(slot)
            slots[slot] = FlightSlot(flight: flight)
            self.keys[slot] = key
            underway[key, default: []].append(slot)
        }
        flights[flight] = record
        return flight
    }

    private mutating func wait(_ caller: FlightCallerID, for slot: FlightSlotID, _ graph: inout FlightGraph) {
        guard let flight = slots[slot]?.flight, let record = callers[caller] else { return }
        slots[slot]?.callers.insert(caller)
        flights[flight]?.waits += 1
        graph.add(record.chain, waitingFor: flight, record.manner)
        callers[caller]?.wait(for: slot)
    }

    /// The caller was cancelled: it gets nothing but that, now or as soon as it joins.
    package mutating func leave(_ caller: FlightCallerID, _ graph: inout FlightGraph) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        if callers[caller] == nil {
            departed.insert(caller)
        } else {
            fail(caller, CancellationError(), &effects, &graph)
        }
        return effects
    }

    /// The caller's call is over: nothing of it is remembered.
    package mutating func forget(_ caller: FlightCallerID) {
        departed.remove(caller)
    }
}
