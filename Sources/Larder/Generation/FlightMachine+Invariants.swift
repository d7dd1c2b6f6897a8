extension FlightMachine {
    /// Traps if the parts of the state do not fit together; `graph` holds no flights but the machine's.
    package func checkInvariants(_ graph: FlightGraph) {
        graph.checkInvariants()
        precondition(graph.count == flights.count, "The graph has the flights.")
        precondition(keys.count == slots.count && keys.keys.allSatisfy { slots[$0] != nil }, "A slot has a key.")
        precondition(slots.count == flights.values.reduce(0) { $0 + $1.slots.count }, "A slot has a flight.")
        for (id, flight) in flights {
            precondition(!flight.slots.isEmpty, "A flight that has landed is over.")
            precondition(flight.isHeld || flight.waits > 0, "A flight without callers is over.")
            precondition(flight.slots.allSatisfy { slots[$0]?.flight == id })
            precondition(flight.waits == flight.slots.reduce(0) { $0 + (slots[$1]?.callers.count ?? 0) })
        }
        for (id, slot) in slots {
            let isUnderway = keys[id].map { underway[$0]?.contains(id) == true } ?? false
            precondition((slot.standing == .overtaken) != isUnderway, "Who may store is underway.")
            precondition(slot.callers.allSatisfy { callers[$0]?.waits.contains(id) == true }, "A wait has two ends.")
        }
        for (id, caller) in callers {
            precondition(!caller.waits.isEmpty, "A caller that waits for nothing is gone.")
            precondition(caller.waits.allSatisfy { slots[$0]?.callers.contains(id) == true })
        }
        for ids in underway.values {
            let storers = ids.count { slots[$0]?.standing == .storing }
            let isDeferred = ids.contains { slots[$0]?.standing == .deferred }
            precondition(!ids.isEmpty && Set(ids).count == ids.count)
            precondition(storers <= 1 && (!isDeferred || storers == 1), "Who waits for a store waits for one.")
        }
        precondition(own.keys.allSatisfy { slots[$0]?.standing == .deferred })
        precondition(gathered.keys.allSatisfy { callers[$0] != nil }, "What was gathered is handed over.")
    }
}
