extension FlightMachine {
    /// One key of a flight is done: those who wait for it are told.
    ///
    /// `values` holds the outcome among others, and callers of this one key share it.
    mutating func land(
        _ id: FlightSlotID, _ outcome: FlightOutcome<Output>, sharing values: [Key: Output],
        _ effects: inout FlightEffects<Key, Output>, _ graph: inout FlightGraph
    ) {
        guard let slot = slots.removeValue(forKey: id), let key = keys[id] else { return }
        flights[slot.flight]?.waits -= slot.callers.count
        flights[slot.flight]?.slots.remove(id)
        withdraw(id, &effects)
        let (done, gathering) = told(slot, id, &graph)
        switch outcome {
        case .value(let value):
            let landing = FlightLanding(values: values.isEmpty ? [key: value] : values)
            if !done.isEmpty { effects.groups.append((done, .success(landing))) }
            for caller in gathering { gathered[caller, default: FlightLanding()].values[key] = value }
        case .absent:
            let isOwn = slot.flight
            for caller in done {
                let landing = FlightLanding<Key, Output>(unanswered: callers[caller]?.led == isOwn ? [] : [key])
                effects.groups.append(([caller], .success(landing)))
            }
            for caller in gathering where callers[caller]?.led != isOwn {
                gathered[caller, default: FlightLanding()].unanswered.append(key)
            }
        case .failure(let error):
            if !done.isEmpty { effects.groups.append((done, .failure(error))) }
            for caller in gathering { fail(caller, error, &effects, &graph) }
        }
        for caller in done { callers[caller] = nil }
        for caller in gathering where callers[caller]?.others.isEmpty == true {
            callers[caller] = nil
            effects.groups.append(([caller], .success(gathered.removeValue(forKey: caller) ?? FlightLanding())))
        }
        endIfDone(slot.flight, &effects, &graph)
    }

    /// Takes the waits on a slot from its callers: those of one key, which are done, and those that gather.
    ///
    /// Here is what a landing does for each of ten thousand callers.
    private mutating func told(
        _ slot: FlightSlot, _ id: FlightSlotID, _ graph: inout FlightGraph
    ) -> (done: [FlightCallerID], gathering: [FlightCallerID]) {
        var done: [FlightCallerID] = []
        var gathering: [FlightCallerID] = []
        for caller in slot.callers {
            guard let index = callers.index(forKey: caller) else { continue }
            graph.remove(callers.values[index].chain, waitingFor: slot.flight, callers.values[index].manner)
            _ = callers.values[index].stopWaiting(for: id)
            if callers.values[index].gathers { gathering.append(caller) } else { done.append(caller) }
        }
        return (done, gathering)
    }

    /// Ends a caller's waiting with an error.
    mutating func fail(
        _ caller: FlightCallerID, _ error: any Error, _ effects: inout FlightEffects<Key, Output>,
        _ graph: inout FlightGraph
    ) {
        guard let record = callers.removeValue(forKey: caller) else { return }
        effects.groups.append(([caller], .failure(error)))
        if let landing = gathered.removeValue(forKey: caller) { effects.discarded.append(landing) }
        for slot in record.waits {
            guard let flight = slots[slot]?.flight else { continue }
            graph.remove(record.chain, waitingFor: flight, record.manner)
            slots[slot]?.callers.remove(caller)
            flights[flight]?.waits -= 1
            endIfDone(flight, &effects, &graph)
        }
    }

    /// Ends a flight that has landed with all its keys, or has lost its last caller.
    private mutating func endIfDone(
        _ id: FlightID, _ effects: inout FlightEffects<Key, Output>, _ graph: inout FlightGraph
    ) {
        guard let flight = flights[id], flight.slots.isEmpty || flight.waits == 0 && !flight.isHeld else { return }
        flights[id] = nil
        graph.end(id)
        for slot in flight.slots {
            slots[slot] = nil
            withdraw(slot, &effects)
        }
        effects.ended.append(id)
    }

    /// Forgets a slot that has landed or ended: nobody joins it any more.
    private mutating func withdraw(_ slot: FlightSlotID, _ effects: inout FlightEffects<Key, Output>) {
        if let own = own.removeValue(forKey: slot) { effects.outcomes.append(own) }
        guard let key = keys.removeValue(forKey: slot) else { return }
        effects.keys.append(key)
        guard let index = underway.index(forKey: key), underway.values[index].contains(slot) else { return }
        underway.values[index].removeAll { $0 == slot }
        if underway.values[index].isEmpty { effects.keys.append(underway.remove(at: index).key) }
    }
}
