/// The rules of single flight: which caller loads a value, which callers wait for it, and which load stores it.
///
/// It takes no lock, runs nothing, and knows no time: each call says what happened, and returns what is to be done. A *load*
/// is one run of a closure, for one key or for several. A *caller* waits for one load at a time.
///
/// At most one load of a key can be joined. A synchronous caller inside a task must not wait for an asynchronous load: its
/// own load runs *aside*, and the first of them to store decides for all. Every other write of a key *overtakes* its loads:
/// their callers get their values, nothing of them is stored, and no caller joins them any more.
package struct LoadMachine<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    struct Load {
        /// In the order of the call.
        let keys: [Key]
        let isAsync: Bool
        /// Whether it continues without callers.
        var isHeld: Bool
        /// The indices of the keys that have no value yet.
        var open: Set<Int>
        var values: [Key: Output] = [:]
        var callers: Set<LoadCallerID> = []
        /// The keys that it loads next to another load, and may still store.
        var aside: Set<Key> = []
        /// The keys that it alone may store.
        var storing: Set<Key> = []

        var openKeys: [Key] { keys.indices.filter(open.contains).map { keys[$0] } }
    }

    /// A caller that waits.
    ///
    /// It has no key, since code that is generic over keys is slow with thousands of callers.
    struct Caller {
        let chain: [LoadID]
        let load: LoadID
        /// The indices of its keys in the load's.
        let wants: [Int]
    }

    var loads: [LoadID: Load] = [:]
    /// The load of each key that callers can join.
    var underway: [Key: LoadID] = [:]
    /// The loads that have begun next to others.
    var asides: Set<LoadID> = []
    var callers: [LoadCallerID: Caller] = [:]
    /// The keys that are known to have no value.
    var absences: [Key: Absence] = [:]
    /// Callers that were cancelled before they joined.
    var departed: Set<LoadCallerID> = []

    package init() {}

    /// Whether no load could still store.
    package var isIdle: Bool { underway.isEmpty && asides.isEmpty }

    /// Whether a load has not ended.
    package func isRunning(_ load: LoadID) -> Bool { loads[load] != nil }

    /// The number of callers that wait.
    package var callerCount: Int { callers.count }

    /// Lets a caller that needs values for `keys`, each named once, lead a load of those that have none it may wait for; if
    /// there are no such keys, it joins the load of the first key.
    ///
    /// It runs inside the loads of `chain`.
    package mutating func join(
        _ keys: [Key], as id: LoadCallerID, in chain: [LoadID], _ wait: LoadWait, _ graph: inout LoadGraph
    ) -> JoinResult<Key> {
        if !departed.isEmpty, departed.remove(id) != nil { return .cancelled }
        if !chain.isEmpty {
            for key in keys where racers(key).contains(where: { graph.isWaiting($0, forAnyOf: chain) }) {
                return .wouldDeadlock(key)
            }
        }
        // A load on a thread, for which tasks may wait, waits for nothing that needs the pool of tasks.
        let waitsForTasks = wait == .suspends || wait == .blocks && chain.isEmpty
        let led = keys.filter { key in underway[key].map { !waitsForTasks && loads[$0]?.isAsync == true } ?? true }
        if !led.isEmpty {
            // A synchronous load runs on the thread of its caller, and cannot be stopped.
            let load = begin(led, isAsync: wait == .suspends, isHeld: wait != .suspends, &graph)
            add(id, Caller(chain: chain, load: load, wants: Array(led.indices)), &graph)
            return .leads(load, led)
        }
        guard let load = keys.first.flatMap({ underway[$0] }), let all = loads[load]?.keys else { return .cancelled }
        let wants =
            all.count == 1
            ? [0] : Set(keys).intersection(all).compactMap { underway[$0] == load ? all.firstIndex(of: $0) : nil }
        add(id, Caller(chain: chain, load: load, wants: wants), &graph)
        return .joined
    }

    private mutating func add(_ id: LoadCallerID, _ caller: Caller, _ graph: inout LoadGraph) {
        callers[id] = caller
        loads[caller.load]?.callers.insert(id)
        graph.change(caller.chain, waitingFor: caller.load, by: 1)
    }

    /// Begins a load that no caller waits for yet, for those of `keys` that have none.
    ///
    /// It continues without callers, and callers can join it.
    package mutating func begin(_ keys: [Key], _ graph: inout LoadGraph) -> (LoadID, [Key])? {
        let led = keys.filter { underway[$0] == nil }
        return led.isEmpty ? nil : (begin(led, isAsync: true, isHeld: true, &graph), led)
    }

    private mutating func begin(_ keys: [Key], isAsync: Bool, isHeld: Bool, _ graph: inout LoadGraph) -> LoadID {
        let id = graph.begin()
        var load = Load(keys: keys, isAsync: isAsync, isHeld: isHeld, open: Set(keys.indices))
        for key in keys {
            if underway[key] == nil { underway[key] = id } else { load.aside.insert(key) }
        }
        if !load.aside.isEmpty { asides.insert(id) }
        loads[id] = load
        return id
    }

    /// Wakes a caller that was cancelled, now or as soon as it joins.
    package mutating func leave(_ id: LoadCallerID, _ graph: inout LoadGraph) -> LoadEffects<Key, Output> {
        var effects = LoadEffects<Key, Output>()
        guard let caller = callers.removeValue(forKey: id) else {
            departed.insert(id)
            return effects
        }
        effects.groups.append(([id], .failure(CancellationError())))
        graph.change(caller.chain, waitingFor: caller.load, by: -1)
        loads[caller.load]?.callers.remove(id)
        if let load = loads[caller.load], load.callers.isEmpty, !load.isHeld { end(caller.load, nil, &effects, &graph) }
        return effects
    }

    /// Forgets a caller whose call has ended.
    package mutating func forget(_ caller: LoadCallerID) {
        departed.remove(caller)
    }
}

/// The result of a call's attempt to join.
package enum JoinResult<Key: Hashable & Sendable>: Sendable {
    /// The caller has to load the values of these keys, and waits for that.
    case leads(LoadID, [Key])
    /// The caller waits for another load.
    case joined
    /// Waiting for this key would never end.
    case wouldDeadlock(Key)
    case cancelled
}

/// What is to be done after a call of the machine, once its lock is released.
package struct LoadEffects<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    /// Callers to wake, and the values that all of a group get.
    ///
    /// A leader gets no more values than these.
    package internal(set) var groups: [(callers: [LoadCallerID], result: Result<[Key: Output], any Error>)] = []
    /// Loads that have ended: if their closure still runs, it is to be cancelled.
    package internal(set) var ended: [LoadID] = []
    /// What must not be released under the lock.
    var keys: [Key] = []
    var values: [[Key: Output]] = []

    /// Whether there is nothing to do and nothing to release.
    var isNothing: Bool { groups.isEmpty && ended.isEmpty && keys.isEmpty && values.isEmpty }
}
