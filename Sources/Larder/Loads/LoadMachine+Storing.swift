extension LoadMachine {
    /// The loads of a key that may still store it.
    func racers(_ key: Key) -> [LoadID] {
        let aside = asides.isEmpty ? [] : asides.filter { loads[$0]?.aside.contains(key) == true }
        return (underway[key].map { [$0] } ?? []) + aside
    }

    private func storer(of key: Key) -> LoadID? {
        racers(key).first { loads[$0]?.storing.contains(key) == true }
    }

    /// The keys of a load that have no value, in the order of the call.
    package func openKeys(of load: LoadID) -> [Key] { loads[load]?.openKeys ?? [] }

    /// Notes that a load found these values stored already: it does not store them again.
    package mutating func found(
        _ values: [Key: Output], by load: LoadID, _ graph: inout LoadGraph
    ) -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        answer(load, values, &effects, &graph)
        return effects
    }

    /// Notes that a load has looked for values, and loads nothing yet: the keys that were overtaken in the meantime it loads
    /// as if it began now.
    ///
    /// - Returns: The keys to look for again, since the first look may have been before the write.
    package mutating func resume(_ load: LoadID) -> [Key] {
        // If another load has begun since, that one stores.
        let resumed = openKeys(of: load).filter { underway[$0] == nil && loads[load]?.aside.contains($0) == false }
        for key in resumed { underway[key] = load }
        return resumed
    }

    /// Returns whether a load may store a value for a key now.
    ///
    /// The first that asks may, until it has ended.
    package mutating func mayStore(_ key: Key, of load: LoadID) -> Bool {
        guard racers(key).contains(load) else { return false }
        if let storer = storer(of: key) { return storer == load }
        // Other callers may depend on what it stores, so it continues if its own leave.
        loads[load]?.isHeld = true
        loads[load]?.storing.insert(key)
        return true
    }

    /// Returns whether a load that may not store a key has to use the value that another load has stored.
    package func isBeaten(_ key: Key, of load: LoadID) -> Bool {
        if asides.contains(load) { return true }
        return underway[key] == load && storer(of: key).map { $0 != load } ?? false
    }

    /// Ends a load that has loaded and, where it might, stored these values; its other keys have none.
    package mutating func finish(
        _ load: LoadID, with values: [Key: Output], _ graph: inout LoadGraph
    ) -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        for key in loads[load]?.storing ?? [] {
            guard let value = values[key] else { continue }
            for other in racers(key) where other != load {
                loads[other]?.aside.remove(key)
                // The value that is stored first is the value of every caller.
                if underway[key] == other { answer(other, [key: value], &effects, &graph) }
            }
        }
        answer(load, values, &effects, &graph)
        end(load, nil, &effects, &graph)
        return effects
    }

    /// Ends a load that has failed to load or to store.
    package mutating func finish(
        _ load: LoadID, throwing error: any Error, _ graph: inout LoadGraph
    ) -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        end(load, error, &effects, &graph)
        return effects
    }

    /// Notes that a key was set, updated or removed by a write that is no load's.
    package mutating func noteWrite(_ key: Key) -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        for load in racers(key) {
            loads[load]?.aside.remove(key)
            loads[load]?.storing.remove(key)
        }
        if let index = underway.index(forKey: key) { effects.keys.append(underway.remove(at: index).key) }
        if let index = absences.index(forKey: key) { effects.keys.append(absences.remove(at: index).key) }
        return effects
    }

    /// Notes that all keys were removed.
    package mutating func noteClear() -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        effects.keys = Array(underway.keys) + absences.keys
        for load in Array(loads.keys) {
            loads[load]?.aside = []
            loads[load]?.storing = []
        }
        underway = [:]
        absences = [:]
        return effects
    }

    /// Gives values to the callers of a load.
    ///
    /// Callers whose keys all have their value are woken.
    private mutating func answer(
        _ id: LoadID, _ values: [Key: Output], _ effects: inout LoadEffects<Key, Output>, _ graph: inout LoadGraph
    ) {
        guard let (keys, open) = loads[id].map({ ($0.keys, $0.open) }), !values.isEmpty else { return }
        for index in open {
            let key = keys[index]
            guard values[key] != nil else { continue }
            loads[id]?.open.remove(index)
            loads[id]?.aside.remove(key)
            loads[id]?.storing.remove(key)
            if underway[key] == id { underway[key] = nil }
            effects.keys.append(key)
        }
        loads[id]?.values.merge(values) { first, _ in first }
        guard let load = loads[id] else { return }
        if load.open.isEmpty { return end(id, nil, &effects, &graph) }
        let done = load.callers.filter { callers[$0]?.wants.allSatisfy { !load.open.contains($0) } == true }
        wake(done, of: id, .success(load.values), &effects, &graph)
    }

    private mutating func wake(
        _ woken: Set<LoadCallerID>, of load: LoadID, _ result: Result<[Key: Output], any Error>,
        _ effects: inout LoadEffects<Key, Output>, _ graph: inout LoadGraph
    ) {
        if woken.isEmpty { return }
        for id in woken {
            guard let caller = callers.removeValue(forKey: id) else { continue }
            graph.change(caller.chain, waitingFor: load, by: -1)
        }
        loads[load]?.callers.subtract(woken)
        effects.groups.append((Array(woken), result))
    }

    /// Ends a load that is complete, has failed or has lost its last caller.
    mutating func end(
        _ id: LoadID, _ failure: (any Error)?, _ effects: inout LoadEffects<Key, Output>,
        _ graph: inout LoadGraph
    ) {
        guard let load = loads[id] else { return }
        let result: Result<[Key: Output], any Error> =
            if let failure { .failure(failure) } else { .success(load.values) }
        wake(load.callers, of: id, result, &effects, &graph)
        for key in load.keys where underway[key] == id { underway[key] = nil }
        asides.remove(id)
        loads[id] = nil
        graph.end(id)
        effects.keys += load.keys
        effects.values.append(load.values)
        effects.ended.append(id)
    }
}
