internal import Dispatch
internal import LarderLocks
internal import LarderStore

/// The loads of a cache that run, and the keys that are known to have no value.
///
/// A load *stands* at its keys until a write or removal overtakes it, its last caller leaves it, it takes too long, or it is done.
/// Callers join the first load that stands at a key. A load stores what it has loaded where it still stands. It may give its callers the result before
/// that: it stands on, so that a write or removal overtakes it, and later callers get the same result.
///
/// `ID` is what stands for a key here: its form on the disk, or the key itself. What depends on the type of the outputs is inlined, so
/// that the compiler can make a fast form of the rest for forms on the disk; the outputs are boxed. A load is an object: where the types
/// are not known to the compiler, each change in place within a dictionary takes four allocations.
final class Loads<ID: Hashable & Sendable>: Sendable {
    typealias Ticket = LoadTicket

    private final class Load {
        let keys: [ID]
        let isSynchronous: Bool
        /// A Boolean value that indicates whether it only looks for values, so that no other caller may rely on it.
        let isLook: Bool
        /// The callers that have neither taken the result nor left.
        var callers: Set<Int>
        var wakers: [Int: @Sendable () -> Void] = [:]
        var task: Task<Void, Never>?
        /// A Boolean value that indicates whether its result is being stored, so that it is not ended any more.
        var isClaimed = false
        /// Ends the load when it takes too long.
        var deadline: Wakeup?
        /// Gets the error of a load that goes on without callers; nil if the last one that leaves ends it.
        var failed: (@Sendable (any Error) -> Void)?
        var result: Result<any LoadOutputs, any Error>?
        /// What is to be stored, while the callers have the result before that.
        var early: LoadStoring?
        /// The tags that were removed while it runs, with which it stores nothing.
        var removedTags: Set<String> = []

        init(_ keys: [ID], isSynchronous: Bool, isLook: Bool, caller: Int) {
            (self.keys, self.isSynchronous, self.isLook) = (keys, isSynchronous, isLook)
            callers = [caller]
        }

        func hasOutput(at place: Int) -> Bool {
            if case .success(let outputs)? = result { outputs.hasOutput(at: place) } else { false }
        }
    }

    /// What is left to do outside of the lock when callers or a load end.
    private struct Ending: Sendable {
        var wakers: [@Sendable () -> Void] = []
        var task: Task<Void, Never>?
        var deadline: Wakeup?
        /// Released outside of the lock.
        var result: Result<any LoadOutputs, any Error>?
        var (failed, failure): ((@Sendable (any Error) -> Void)?, (any Error)?)

        init(
            wakers: [@Sendable () -> Void] = [], task: Task<Void, Never>? = nil, deadline: Wakeup? = nil,
            result: Result<any LoadOutputs, any Error>? = nil
        ) { (self.wakers, self.task, self.deadline, self.result) = (wakers, task, deadline, result) }

        /// What the end of a load leaves to do.
        init(_ load: Load, failure: (any Error)?) {
            self.init(wakers: Array(load.wakers.values), task: load.task, deadline: load.deadline)
            if load.callers.isEmpty { (failed, self.failure) = (load.failed, failure) }
        }

        func reportFailure() { if let failure { failed?(failure) } }
    }

    private struct State {
        var loads: [Int: Load] = [:]
        /// The loads that stand at a key, the one to join first.
        var standing: [ID: [LoadStand]] = [:]
        /// The last moments at which keys are known to have no value.
        var absences: [ID: Int64] = [:]
        /// The loads whose callers have the result before it is stored, and their bytes.
        var (storingCount, storingBytes) = (0, 0)
        var counts = LoadCounts()

        /// A Boolean value that indicates whether no write concerns anything here.
        var isUnaffected: Bool { standing.isEmpty && absences.isEmpty }

        func stands(_ load: Int, at key: ID) -> Bool { standing[key]?.contains { $0.load == load } ?? false }

        mutating func stand(_ load: Int, at key: ID, place: Int) {
            let others = standing[key] ?? []
            standing[key] = others + [LoadStand(load: load, place: place)]
        }

        /// Removes loads that stand at keys.
        mutating func keep(at keys: [ID], where isKept: (Int) -> Bool) {
            for key in keys {
                guard let all = standing[key], !all.allSatisfy({ isKept($0.load) }) else { continue }
                let left = all.filter { isKept($0.load) }
                standing[key] = left.isEmpty ? nil : left
            }
        }
    }

    /// The number of absences that are remembered; then all are forgotten.
    static var absenceLimit: Int { 10_000 }
    /// The number of loads whose callers may have the result before it is stored, and their bytes.
    static var storingLimits: (count: Int, bytes: Int) { (1000, 8 << 20) }

    /// Nothing else is locked while it is held.
    private let state = Mutex(State())
    /// Not zero while writers have to ask.
    private let count: LoadCount
    /// What a message calls a key, and the cache.
    private let describe: @Sendable (ID) -> String

    init(_ count: LoadCount, _ describe: @escaping @Sendable (ID) -> String) {
        (self.count, self.describe) = (count, describe)
    }

    deinit { if state.withLock({ !$0.isUnaffected }) { count.change(by: -1) } }

    private func change<R>(_ body: (inout State) -> sending R) -> sending R {
        state.withLock { state in
            let wasUnaffected = state.isUnaffected
            defer { if state.isUnaffected != wasUnaffected { count.change(by: wasUnaffected ? 1 : -1) } }
            return body(&state)
        }
    }

    // MARK: Callers

    /// Joins the loads that stand at keys, and begins one for the other keys, in one step.
    ///
    /// A synchronous caller joins synchronous loads, and none from inside a load, which might wait for this thread.
    ///
    /// A look joins no load but one that has its result.
    ///
    /// - Parameters:
    ///   - places: The keys to load, by their places among all keys of the call.
    ///   - now: The time by which a result that is not stored yet may have expired; nil to join no load that has one.
    /// - Throws: `.recursiveGeneration` if this code is a part of a load of one of the keys.
    private func join(
        _ keys: [ID], _ places: [Int], isSynchronous: Bool, isLook: Bool = false, at now: Int64?
    ) throws(CacheError) -> (own: Ticket?, others: [Ticket]) {
        let (chain, caller, id) = (LoadChain.current, LoadChain.newNumber(), LoadChain.newNumber())
        var (own, others, recursion) = ([LoadPlace](), [Int: [LoadPlace]](), ID?.none)
        change { state in
            if !isLook, !chain.isEmpty {
                let outer = chain.compactMap { state.loads[$0] }.filter { $0.result == nil }
                recursion = places.lazy.map { keys[$0] }.first { key in outer.contains { $0.keys.contains(key) } }
                if recursion != nil { return }
            }
            for place in places {
                let stand = state.standing[keys[place]]?.first { stand in
                    // A load from before the removal of a tag may have loaded what was removed.
                    guard let load = state.loads[stand.load], load.removedTags.isEmpty else { return false }
                    // One that has its result serves every call, unless it has nothing for the key.
                    if let early = load.early {
                        return now.map { $0 <= early.end } ?? false && load.hasOutput(at: stand.place)
                    }
                    if isLook || load.isLook { return false }
                    return !isSynchronous || chain.isEmpty && load.isSynchronous
                }
                if let stand {
                    others[stand.load, default: []].append(LoadPlace(inCall: place, inLoad: stand.place))
                    state.loads[stand.load]?.callers.insert(caller)
                } else {
                    state.stand(id, at: keys[place], place: own.count)
                    own.append(LoadPlace(inCall: place, inLoad: own.count))
                }
            }
            if own.isEmpty { return }
            state.loads[id] = Load(
                own.count == keys.count ? keys : own.map { keys[$0.inCall] }, isSynchronous: isSynchronous,
                isLook: isLook, caller: caller)
        }
        if let recursion {
            throw CacheError(
                .recursiveGeneration,
                "The closure that loads \(describe(recursion)) has asked for the same key, itself or through another load, and"
                    + " would wait for itself. Return a value without asking for this key.")
        }
        let ownTicket = own.isEmpty ? nil : Ticket(load: id, caller: caller, places: own)
        return (ownTicket, others.map { Ticket(load: $0, caller: caller, places: $1) })
    }

    /// Runs the work of a load in a task of its own, which is cancelled when the last caller leaves, or when it takes too long.
    func run(_ ticket: Ticket, within limits: LoadLimits? = nil, _ work: @escaping @Sendable () async -> Void) {
        let task = LoadChain.entering(ticket.load) { Task { await work() } }
        let deadline = limits.flatMap { limits in
            limits.hard.map { limits.timekeeper.wake($0) { self.expire(ticket.load, limits.timeout()) } }
        }
        let (isLeft, isDone) = change { state in
            guard let load = state.loads[ticket.load] else { return (true, true) }
            // Its time may be so short that it was ended in the meantime.
            if load.result != nil { return (load.early == nil, true) }
            (load.task, load.deadline) = (task, deadline)
            return (false, false)
        }
        if isLeft { task.cancel() }
        if isDone { deadline?.cancel() }
    }

    /// Ends a load that takes too long: its callers get an error, and it stands at no key.
    private func expire(_ number: Int, _ error: any Error) {
        let ending = change { state -> Ending in
            guard let load = state.loads[number], load.result == nil, !load.isClaimed else { return Ending() }
            state.counts.timeouts += 1
            state.keep(at: load.keys) { $0 != number }
            defer { (load.result, load.task, load.wakers, load.deadline) = (.failure(error), nil, [:], nil) }
            if load.callers.isEmpty { state.loads[number] = nil }
            return Ending(load, failure: error)
        }
        // Before the callers go on, so that it stores nothing elsewhere.
        ending.task?.cancel()
        for wake in ending.wakers { wake() }
        ending.reportFailure()
    }

    /// Waits until a load has its result, or this task is cancelled.
    private func wait(_ ticket: Ticket) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in wait(ticket) { continuation.resume() } }
        } onCancel: {
            leave(ticket)
        }
    }

    /// Waits on this thread until a load has its result.
    private func wait(_ ticket: Ticket) {
        let signal = DispatchSemaphore(value: 0)
        wait(ticket) { signal.signal() }
        signal.wait()
    }

    /// Calls `wake` once the load has its result, or the caller has left.
    private func wait(_ ticket: Ticket, _ wake: @escaping @Sendable () -> Void) {
        let isWaiting = change { state in
            guard let load = state.loads[ticket.load], load.result == nil, load.callers.contains(ticket.caller) else {
                return false
            }
            load.wakers[ticket.caller] = wake
            return true
        }
        if !isWaiting { wake() }
    }

    /// Takes the result of a load; for a caller that has left, throws `CancellationError`.
    @discardableResult
    private func take(_ ticket: Ticket) throws -> any LoadOutputs {
        // What is returned is released outside the lock.
        let found = change { state -> Result<any LoadOutputs, any Error>? in
            guard let load = state.loads[ticket.load], load.callers.remove(ticket.caller) != nil else { return nil }
            if load.callers.isEmpty && load.early == nil { state.loads[ticket.load] = nil }
            return load.result
        }
        guard let result = found else { throw CancellationError() }
        return try result.get()
    }

    /// Takes the result of a load, each output to its place in the call.
    @inline(__always)
    private func take<Output: Sendable>(_ ticket: Ticket, into outputs: inout [Output?]) throws {
        guard let found = try take(ticket) as? Outputs<Output> else { preconditionFailure("a load of other values") }
        for place in ticket.places { if let output = found.values[place.inLoad] { outputs[place.inCall] = output } }
    }

    /// Leaves a load, and cancels it if no other caller is left.
    func leave(_ ticket: Ticket) {
        let ending = change { state -> Ending in
            guard let load = state.loads[ticket.load], load.callers.remove(ticket.caller) != nil else {
                return Ending()
            }
            let wake = load.wakers.removeValue(forKey: ticket.caller)
            let goesOn = load.result == nil ? load.failed != nil : load.early != nil
            if goesOn || !load.callers.isEmpty { return Ending(wakers: wake.map { [$0] } ?? []) }
            state.keep(at: load.keys) { $0 != ticket.load }
            state.loads[ticket.load] = nil
            return Ending(
                wakers: wake.map { [$0] } ?? [], task: load.task, deadline: load.deadline, result: load.result)
        }
        ending.deadline?.cancel()
        ending.task?.cancel()
        for wake in ending.wakers { wake() }
    }

    /// Leaves a load that has no result yet, and lets it go on without callers.
    ///
    /// - Parameter failed: Gets the error of the load, and the places of its keys in the call.
    func leaveRunning(_ ticket: Ticket, _ failed: @escaping LoadFailure) {
        let wake = change { state -> (@Sendable () -> Void)? in
            guard let load = state.loads[ticket.load], load.result == nil,
                load.callers.remove(ticket.caller) != nil
            else { return nil }
            load.failed = { failed($0, ticket.places.map { $0.inCall }) }
            return load.wakers.removeValue(forKey: ticket.caller)
        }
        wake?()
    }

    /// Gives the callers of a load their result before it is stored, unless so much waits for that already that the store does not keep up.
    ///
    /// - Parameters:
    ///   - outputs: The outputs, in the order of its keys.
    ///   - storing: What is to be stored.
    @inline(__always)
    func deliver<Output: Sendable>(_ ticket: Ticket, _ outputs: [Output?], _ storing: LoadStoring) {
        deliver(ticket, Outputs(values: outputs), storing)
    }

    private func deliver(_ ticket: Ticket, _ result: any LoadOutputs, _ storing: LoadStoring) {
        let (wakers, deadline) = change { state -> ([@Sendable () -> Void], Wakeup?) in
            let (count, bytes) = (state.storingCount + 1, state.storingBytes + storing.bytes)
            guard let load = state.loads[ticket.load], load.result == nil, count <= Self.storingLimits.count,
                bytes <= Self.storingLimits.bytes
            else { return ([], nil) }
            (state.storingCount, state.storingBytes) = (count, bytes)
            defer { (load.result, load.early, load.wakers) = (.success(result), storing, [:]) }
            return (Array(load.wakers.values), load.deadline.take())
        }
        deadline?.cancel()
        for wake in wakers { wake() }
    }

    /// Ends a load.
    ///
    /// - Parameters:
    ///   - result: The outputs, in the order of its keys.
    ///   - absences: The last moments at which keys, by their places in the load, are known to have no value. Those that were written
    ///     since are none.
    ///   - time: The nanoseconds that the closure of the program took; nil if it was not called.
    @inline(__always)
    func finish<Output: Sendable>(
        _ ticket: Ticket, _ result: Result<[Output?], any Error>, absences: [Int: Int64] = [:], time: Int64? = nil
    ) {
        finish(ticket, result.map { Outputs(values: $0) as any LoadOutputs }, absences, time)
    }

    private func finish(
        _ ticket: Ticket, _ result: Result<any LoadOutputs, any Error>, _ absences: [Int: Int64], _ time: Int64?
    ) {
        let ending = change { state -> Ending in
            // One that was ended has its result.
            guard let load = state.loads[ticket.load], load.result == nil || load.early != nil else { return Ending() }
            if let time { state.counts.times.note(nanoseconds: time) }
            if case .failure = result, load.early == nil { state.counts.failures += 1 }
            for (place, end) in absences where state.stands(ticket.load, at: load.keys[place]) {
                if state.absences.count >= Self.absenceLimit { state.absences = [:] }
                state.absences[load.keys[place]] = end
            }
            state.keep(at: load.keys) { $0 != ticket.load }
            defer { (load.task, load.wakers, load.deadline) = (nil, [:], nil) }
            if load.callers.isEmpty { state.loads[ticket.load] = nil }
            guard let early = load.early.take() else {
                load.result = result
                return Ending(load, failure: { if case .failure(let error) = result { error } else { nil } }())
            }
            state.storingCount -= 1
            state.storingBytes -= early.bytes
            return Ending()
        }
        ending.deadline?.cancel()
        for wake in ending.wakers { wake() }
        ending.reportFailure()
    }

    // MARK: Writes

    /// Notes that keys were written or removed: loads that run for them do not store their results.
    ///
    /// - Parameters:
    ///   - keys: The keys; nil for all.
    ///   - load: The load that has written them.
    func overtake(_ keys: @autoclosure () -> [ID]?, by load: Int? = nil) {
        if count.isZero { return }
        let keys = keys()
        change { state in
            guard let keys else { return (state.standing, state.absences) = ([:], [:]) }
            for key in keys { state.absences[key] = nil }
            state.keep(at: keys) { $0 == load }
        }
    }

    /// Notes that keys that a closure chooses were removed: loads that run for them do not store their results.
    func overtake(where isConcerned: (ID) -> Bool) {
        if count.isZero { return }
        change { state in
            for key in state.standing.keys where isConcerned(key) { state.standing[key] = nil }
            for key in state.absences.keys where isConcerned(key) { state.absences[key] = nil }
        }
    }

    /// Notes that the entries with a tag were removed: loads that run store no result with it.
    func overtake(tagged tag: String) {
        if count.isZero { return }
        change { state in
            for load in state.loads.values where load.result == nil || load.early != nil {
                load.removedTags.insert(tag)
            }
        }
    }

    /// Overtakes the other loads of keys if a load stands at all of them, and returns whether it does.
    ///
    /// It is called in the transaction that stores the result: what is stored first stays.
    ///
    /// - Parameter tags: The tags of the results, in the order of the keys.
    func claim(_ keys: [ID], tags: [[String]] = [], of load: Int) -> Bool {
        change { state in
            let removed = state.loads[load]?.removedTags ?? []
            for (place, tags) in tags.enumerated() where !removed.isDisjoint(with: tags) {
                state.keep(at: [keys[place]]) { $0 != load }
            }
            for key in keys where !state.stands(load, at: key) { return false }
            state.keep(at: keys) { $0 == load }
            state.loads[load]?.isClaimed = true
            return true
        }
    }

    /// Returns whether a load stands at a key whose value is stored now, unless it was written in the meantime.
    func begins(_ load: Int, toStoreAt key: ID) -> Bool {
        change { state in
            if !state.stands(load, at: key) { return false }
            state.loads[load]?.isClaimed = true
            return true
        }
    }

    func stands(_ load: Int, at key: ID) -> Bool {
        state.withLock { $0.stands(load, at: key) }
    }

    /// Returns whether a load stands at any of the keys.
    func stand(at keys: [ID]) -> Bool {
        !count.isZero && state.withLock { state in keys.contains { state.standing[$0] != nil } }
    }

    /// Returns whether a key is known to have no value at a moment.
    func isAbsent(_ key: ID, at now: Int64) -> Bool {
        !count.isZero && state.withLock { $0.absences[key].map { $0 >= now } ?? false }
    }

    // MARK: Inspection

    /// The number of callers that wait.
    var waitingCount: Int { state.withLock { $0.loads.values.reduce(0) { $0 + $1.wakers.count } } }

    /// A Boolean value that indicates whether no load runs.
    var isIdle: Bool { state.withLock { $0.loads.values.allSatisfy { $0.result != nil && $0.early == nil } } }

    /// What was counted of the loads.
    var counts: LoadCounts {
        get { state.withLock { $0.counts } }
        set { state.withLock { $0.counts = newValue } }
    }

    /// A Boolean value that indicates whether callers have a result that is not stored yet.
    var isStoring: Bool { state.withLock { $0.storingCount > 0 } }
}

/// Every call that loads values joins the loads that run, and leads one for the other keys.
extension Loads {
    /// Returns the outputs of keys; those for which no load runs are loaded in a task of their own.
    ///
    /// - Parameters:
    ///   - needsValue: A Boolean value that indicates whether keys for which the joined loads give nothing are loaded again.
    ///   - isLook: A Boolean value that indicates whether `lead` only looks for values.
    ///   - now: The time by which a result that is not stored yet may have expired; nil to take none.
    ///   - limits: How long the caller waits, and how long a load runs that it begins.
    ///   - lead: Runs a load, and finishes it.
    /// - Returns: The outputs; nil also for keys whose loads go on after the soft limit.
    @inline(__always)
    func load<Output: Sendable>(
        _ keys: [ID], needsValue: Bool, isLook: Bool = false, at now: Int64? = nil, within limits: LoadLimits? = nil,
        _ lead: @escaping @Sendable (Ticket) async -> Void
    ) async throws -> [Output?] {
        var (outputs, rest) = ([Output?](repeating: nil, count: keys.count), Array(keys.indices))
        while !rest.isEmpty {
            try Task.checkCancellation()
            let (own, others) = try join(keys, rest, isSynchronous: false, isLook: isLook, at: now)
            let patience = limits.map { LoadPatience($0, self, own, others) }
            defer {
                patience?.end()
                for ticket in others { leave(ticket) }
            }
            var taken = 0
            do {
                if let own {
                    run(own, within: limits) { await lead(own) }
                    await wait(own)
                    try take(own, into: &outputs)
                    taken += 1
                }
                for ticket in others {
                    await wait(ticket)
                    try take(ticket, into: &outputs)
                    taken += 1
                }
            } catch let error as CancellationError {
                guard let limits, try patience?.isLate() == true else { throw error }
                let late = ((own.map { [$0] } ?? []) + others).dropFirst(taken)
                limits.note(late: late.flatMap { $0.places.map { $0.inCall } })
                return outputs
            }
            rest = needsValue ? Self.missing(of: others, in: outputs) : []
        }
        return outputs
    }

    /// Returns the outputs of keys; those for which no load runs are loaded on this thread.
    @inline(__always)
    func load<Output: Sendable>(
        _ keys: [ID], needsValue: Bool, at now: Int64? = nil, _ lead: (Ticket) -> Void
    ) throws -> [Output?] {
        var (outputs, rest) = ([Output?](repeating: nil, count: keys.count), Array(keys.indices))
        while !rest.isEmpty {
            let (own, others) = try join(keys, rest, isSynchronous: true, at: now)
            defer { for ticket in others { leave(ticket) } }
            if let own {
                LoadChain.entering(own.load) { lead(own) }
                try take(own, into: &outputs)
            }
            for ticket in others {
                wait(ticket)
                try take(ticket, into: &outputs)
            }
            rest = needsValue ? Self.missing(of: others, in: outputs) : []
        }
        return outputs
    }

    /// Returns the places for which the loads of other callers have nothing.
    private static func missing<Output>(of tickets: [Ticket], in outputs: [Output?]) -> [Int] {
        tickets.flatMap { $0.places.map { $0.inCall } }.filter { outputs[$0] == nil }.sorted()
    }

    /// Begins to load keys in the background, those of which no load runs, unless this code is a part of a load of one.
    func loadInBackground(
        _ keys: [ID], within limits: LoadLimits? = nil, _ lead: @escaping @Sendable (Ticket) async -> Void,
        failed: @escaping LoadFailure
    ) {
        let tickets: (own: Ticket?, others: [Ticket])
        do throws(CacheError) { tickets = try join(keys, Array(keys.indices), isSynchronous: false, at: nil) } catch {
            return
        }
        for ticket in tickets.others { leave(ticket) }
        guard let own = tickets.own else { return }
        leaveRunning(own, failed)
        run(own, within: limits) { await lead(own) }
    }
}
