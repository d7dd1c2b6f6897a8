extension FlightMachine {
    /// The flight saw that these values are there already; they are not stored again.
    package mutating func found(
        _ values: [Key: Output], by flight: FlightID, _ graph: inout FlightGraph
    ) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        for slot in flights[flight]?.slotsInOrder ?? [] {
            guard let key = keys[slot], let value = values[key] else { continue }
            land(slot, .value(value), sharing: values, &effects, &graph)
        }
        return effects
    }

    /// The flight has looked, and begins to make nothing yet: what was overtaken meanwhile it makes as if it began now.
    ///
    /// - Returns: The keys to look for once more, since the first look may have been before what overtook them.
    package mutating func resume(_ flight: FlightID) -> [Key] {
        var resumed: [Key] = []
        for slot in flights[flight]?.slotsInOrder ?? [] where slots[slot]?.standing == .overtaken {
            // Where another flight has begun since, that one stores.
            guard let key = keys[slot], underway[key] == nil else { continue }
            slots[slot]?.standing = .underway
            underway[key] = [slot]
            resumed.append(key)
        }
        return resumed
    }

    /// The keys that the flight still has to make, in the order of the call.
    package func openKeys(of flight: FlightID) -> [Key] {
        (flights[flight]?.slotsInOrder ?? []).compactMap { keys[$0] }
    }

    /// Whether this flight may store a value for this key now.
    ///
    /// The first that asks may, and no other, until it has landed.
    package mutating func mayStore(_ key: Key, of flight: FlightID) -> Bool {
        // What was overtaken is not here any more.
        guard let slot = underway[key]?.first(where: { slots[$0]?.flight == flight }) else { return false }
        switch slots[slot]?.standing {
        case .storing: return true
        case .underway: break
        case .overtaken, .deferred, nil: return false
        }
        let isTaken = isBeingStored(key)
        slots[slot]?.standing = isTaken ? .deferred : .storing
        // Others may depend on what it stores, so it goes on even if its callers leave.
        if !isTaken { flights[flight]?.isHeld = true }
        return !isTaken
    }

    private func isBeingStored(_ key: Key) -> Bool {
        (underway[key] ?? []).contains { slots[$0]?.standing == .storing }
    }

    /// The flight has made and, where it might, stored these values; for other keys of its own it made none.
    package mutating func finish(
        _ flight: FlightID, with values: [Key: Output], _ graph: inout FlightGraph
    ) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        for slot in flights[flight]?.slotsInOrder ?? [] {
            guard let key = keys[slot] else { continue }
            let outcome = values[key].map(FlightOutcome.value) ?? .absent
            switch slots[slot]?.standing {
            case .overtaken:
                land(slot, outcome, sharing: values, &effects, &graph)
            case .underway where !isBeingStored(key):
                land(slot, outcome, sharing: values, &effects, &graph)
            case .underway, .deferred:
                slots[slot]?.standing = .deferred
                own[slot] = outcome
            case .storing:
                // What is stored first is everybody's.
                for each in underway[key] ?? [] { land(each, outcome, sharing: values, &effects, &graph) }
            case nil: break
            }
        }
        return effects
    }

    /// The flight failed, in making or in storing.
    package mutating func finish(
        _ flight: FlightID, throwing error: any Error, _ graph: inout FlightGraph
    ) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        for slot in flights[flight]?.slotsInOrder ?? [] {
            guard let key = keys[slot], let standing = slots[slot]?.standing else { continue }
            land(slot, .failure(error), sharing: [:], &effects, &graph)
            if standing == .storing { release(key, &effects, &graph) }
        }
        return effects
    }

    /// The one that stored this key has failed: who waited for it lands with its own, now or when it is through.
    private mutating func release(
        _ key: Key, _ effects: inout FlightEffects<Key, Output>, _ graph: inout FlightGraph
    ) {
        for slot in underway[key] ?? [] where slots[slot]?.standing == .deferred {
            if let outcome = own[slot] {
                land(slot, outcome, sharing: [:], &effects, &graph)
            } else {
                slots[slot]?.standing = .underway
            }
        }
    }

    /// The key was set, updated or removed by somebody else.
    package mutating func noteWrite(_ key: Key, _ graph: inout FlightGraph) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        overtake(key, &effects, &graph)
        return effects
    }

    /// All keys were removed.
    package mutating func noteClear(_ graph: inout FlightGraph) -> FlightEffects<Key, Output> {
        var effects = FlightEffects<Key, Output>()
        for key in Array(underway.keys) { overtake(key, &effects, &graph) }
        return effects
    }

    private mutating func overtake(
        _ key: Key, _ effects: inout FlightEffects<Key, Output>, _ graph: inout FlightGraph
    ) {
        guard let index = underway.index(forKey: key) else { return }
        let overtaken = underway.remove(at: index)
        effects.keys.append(overtaken.key)
        for slot in overtaken.value {
            // One that has made its value waited only for the one that stores, whose value is out of date now.
            if let outcome = own[slot] {
                land(slot, outcome, sharing: [:], &effects, &graph)
            } else {
                slots[slot]?.standing = .overtaken
            }
        }
    }
}
