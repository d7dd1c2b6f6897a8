internal import Dispatch
internal import LarderLocks
internal import LarderStore

/// The loads of a cache that run, and the keys that are known to have no value.
///
/// A load *stands* at its keys until a write or removal overtakes it, its last caller leaves it, or it is done. Callers join
/// the first load that stands at a key. A load stores what it has loaded where it still stands.
///
/// `ID` is what stands for a key here: its form on the disk, or the key itself.
final class Loads<ID: Hashable & Sendable, Key: Sendable, Output: Sendable>: Sendable {
    typealias Item = (key: Key, stored: ID)
    typealias Result = Swift.Result<[ID: Output], any Error>

    /// A caller of a load.
    struct Ticket: Sendable {
        let load: Int
        let caller: Int
        let keys: [Item]
    }

    private struct Load {
        let keys: [ID]
        let isSynchronous: Bool
        /// A Boolean value that indicates whether it only looks for values, so that no other caller may rely on it.
        let isLook: Bool
        /// The callers that have neither taken the result nor left.
        var callers: Set<Int>
        var wakers: [Int: @Sendable () -> Void] = [:]
        var task: Task<Void, Never>?
        var result: Result?
        /// The tags that were removed while it runs, with which it stores nothing.
        var removedTags: Set<String> = []
    }

    private struct State {
        var loads: [Int: Load] = [:]
        /// The loads that stand at a key, the one to join first.
        var standing: [ID: [Int]] = [:]
        /// The last moments at which keys are known to have no value.
        var absences: [ID: Int64] = [:]

        /// A Boolean value that indicates whether no write concerns anything here.
        var isUnaffected: Bool { standing.isEmpty && absences.isEmpty }

        /// Removes loads that stand at keys.
        mutating func keep(at keys: [ID], where isKept: (Int) -> Bool) {
            for key in keys {
                let left = standing[key]?.filter(isKept) ?? []
                standing[key] = left.isEmpty ? nil : left
            }
        }
    }

    /// The number of absences that are remembered; then all are forgotten.
    static var absenceLimit: Int { 10_000 }

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
    /// A look joins no load.
    ///
    /// - Throws: `.recursiveGeneration` if this code is a part of a load of one of the keys.
    func join(
        _ keys: [Item], isSynchronous: Bool, isLook: Bool = false
    ) throws(CacheError) -> (own: Ticket?, others: [Ticket]) {
        let (chain, caller, id) = (LoadChain.current, LoadChain.newNumber(), LoadChain.newNumber())
        var (own, others, recursion) = ([Item](), [Int: [Item]](), ID?.none)
        change { state in
            let outer = chain.compactMap { state.loads[$0] }.filter { $0.result == nil }
            recursion = isLook ? nil : keys.map { $0.stored }.first { key in outer.contains { $0.keys.contains(key) } }
            if recursion != nil { return }
            for item in keys {
                let load = state.standing[item.stored]?.first { load in
                    // A load from before the removal of a tag may have loaded what was removed.
                    guard !isLook, let load = state.loads[load], !load.isLook, load.removedTags.isEmpty else {
                        return false
                    }
                    return !isSynchronous || chain.isEmpty && load.isSynchronous
                }
                if let load {
                    others[load, default: []].append(item)
                    state.loads[load]?.callers.insert(caller)
                } else {
                    own.append(item)
                    state.standing[item.stored, default: []].append(id)
                }
            }
            if own.isEmpty { return }
            state.loads[id] = Load(
                keys: own.map { $0.stored }, isSynchronous: isSynchronous, isLook: isLook, callers: [caller])
        }
        if let recursion {
            throw CacheError(
                .recursiveGeneration,
                "The closure that loads \(describe(recursion)) has asked for the same key, itself or through another load, and"
                    + " would wait for itself. Return a value without asking for this key.")
        }
        let ownTicket = own.isEmpty ? nil : Ticket(load: id, caller: caller, keys: own)
        return (ownTicket, others.map { Ticket(load: $0, caller: caller, keys: $1) })
    }

    /// Runs the work of a load in a task of its own, which is cancelled when the last caller leaves.
    func run(_ ticket: Ticket, _ work: @escaping @Sendable () async -> Void) {
        let task = LoadChain.entering(ticket.load) { Task { await work() } }
        let isLeft = change { state in
            state.loads[ticket.load]?.task = task
            return state.loads[ticket.load] == nil
        }
        if isLeft { task.cancel() }
    }

    /// Waits for the result of a load.
    func result(for ticket: Ticket) async throws -> [ID: Output] {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in wait(ticket) { continuation.resume() } }
        } onCancel: {
            leave(ticket)
        }
        return try take(ticket)
    }

    /// Waits for the result of a load on this thread.
    func result(for ticket: Ticket) throws -> [ID: Output] {
        let signal = DispatchSemaphore(value: 0)
        wait(ticket) { signal.signal() }
        signal.wait()
        return try take(ticket)
    }

    /// Calls `wake` once the load is done or the caller has left.
    private func wait(_ ticket: Ticket, _ wake: @escaping @Sendable () -> Void) {
        let isWaiting = change { state in
            let isCaller = state.loads[ticket.load]?.callers.contains(ticket.caller) ?? false
            guard isCaller, state.loads[ticket.load]?.result == nil else { return false }
            state.loads[ticket.load]?.wakers[ticket.caller] = wake
            return true
        }
        if !isWaiting { wake() }
    }

    /// Takes the result of a load that is done; for a caller that has left, throws `CancellationError`.
    @discardableResult
    func take(_ ticket: Ticket) throws -> [ID: Output] {
        // The last caller releases the load, outside the lock. For others a copy would make the next one copy all callers.
        let (found, load) = change { state -> (Result?, Load?) in
            guard state.loads[ticket.load]?.callers.remove(ticket.caller) != nil else { return (nil, nil) }
            let result = state.loads[ticket.load]?.result
            let isLast = state.loads[ticket.load]?.callers.isEmpty ?? true
            return (result, isLast ? state.loads.removeValue(forKey: ticket.load) : nil)
        }
        defer { withExtendedLifetime(load) {} }
        guard let result = found else { throw CancellationError() }
        let outputs = try result.get()
        // The load may have been overtaken at other keys.
        return ticket.keys.reduce(into: [:]) { $0[$1.stored] = outputs[$1.stored] }
    }

    /// Leaves a load, and cancels it if no other caller is left.
    func leave(_ ticket: Ticket) {
        let (wake, load) = change { state -> ((@Sendable () -> Void)?, Load?) in
            guard state.loads[ticket.load]?.callers.remove(ticket.caller) != nil else { return (nil, nil) }
            let wake = state.loads[ticket.load]?.wakers.removeValue(forKey: ticket.caller)
            guard let load = state.loads[ticket.load], load.callers.isEmpty else { return (wake, nil) }
            state.keep(at: load.keys) { $0 != ticket.load }
            return (wake, state.loads.removeValue(forKey: ticket.load))
        }
        load?.task?.cancel()
        wake?()
    }

    /// Ends a load.
    ///
    /// - Parameter absence: The last moment at which its keys, where it stands, are known to have no value.
    func finish(_ ticket: Ticket, _ result: Result, absentUntil absence: Int64?) {
        let wakers = change { state -> [@Sendable () -> Void] in
            guard let load = state.loads[ticket.load] else { return [] }
            if let absence {
                for key in load.keys where state.standing[key]?.contains(ticket.load) == true {
                    if state.absences.count >= Self.absenceLimit { state.absences = [:] }
                    state.absences[key] = absence
                }
            }
            state.keep(at: load.keys) { $0 != ticket.load }
            state.loads[ticket.load]?.result = result
            state.loads[ticket.load]?.task = nil
            state.loads[ticket.load]?.wakers = [:]
            return Array(load.wakers.values)
        }
        for wake in wakers { wake() }
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
            for load in state.loads.keys where state.loads[load]?.result == nil {
                state.loads[load]?.removedTags.insert(tag)
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
            for (key, tags) in zip(keys, tags) where !removed.isDisjoint(with: tags) {
                state.keep(at: [key]) { $0 != load }
            }
            guard keys.allSatisfy({ state.standing[$0]?.contains(load) == true }) else { return false }
            state.keep(at: keys) { $0 == load }
            return true
        }
    }

    func stands(_ load: Int, at key: ID) -> Bool {
        state.withLock { $0.standing[key]?.contains(load) == true }
    }

    /// Returns whether a key is known to have no value at a moment.
    func isAbsent(_ key: ID, at now: Int64) -> Bool {
        !count.isZero && state.withLock { $0.absences[key].map { $0 >= now } ?? false }
    }

    // MARK: Inspection

    /// The number of callers that wait.
    var waitingCount: Int { state.withLock { $0.loads.values.reduce(0) { $0 + $1.wakers.count } } }

    /// A Boolean value that indicates whether no load runs.
    var isIdle: Bool { state.withLock { $0.loads.values.allSatisfy { $0.result != nil } } }
}

/// Every call that loads values joins the loads that run, and leads one for the other keys.
extension Loads {
    /// Returns the outputs of keys; those for which no load runs are loaded in a task of their own.
    ///
    /// - Parameters:
    ///   - needsValue: A Boolean value that indicates whether keys for which the joined loads give nothing are loaded again.
    ///   - isLook: A Boolean value that indicates whether `lead` only looks for values.
    ///   - lead: Runs a load, and finishes it.
    func load(
        _ keys: [Item], needsValue: Bool, isLook: Bool = false, _ lead: @escaping @Sendable (Ticket) async -> Void
    ) async throws -> [ID: Output] {
        var (outputs, rest) = ([ID: Output](), keys)
        while !rest.isEmpty {
            try Task.checkCancellation()
            let (own, others) = try join(rest, isSynchronous: false, isLook: isLook)
            defer { for ticket in others { leave(ticket) } }
            if let own {
                run(own) { await lead(own) }
                outputs.merge(try await result(for: own)) { $1 }
            }
            for ticket in others { outputs.merge(try await result(for: ticket)) { $1 } }
            rest = needsValue ? others.flatMap { $0.keys }.filter { outputs[$0.stored] == nil } : []
        }
        return outputs
    }

    /// Returns the outputs of keys; those for which no load runs are loaded on this thread.
    func load(_ keys: [Item], needsValue: Bool, _ lead: (Ticket) -> Void) throws -> [ID: Output] {
        var (outputs, rest) = ([ID: Output](), keys)
        while !rest.isEmpty {
            let (own, others) = try join(rest, isSynchronous: true)
            defer { for ticket in others { leave(ticket) } }
            if let own {
                LoadChain.entering(own.load) { lead(own) }
                outputs.merge(try take(own)) { $1 }
            }
            for ticket in others { outputs.merge(try result(for: ticket)) { $1 } }
            rest = needsValue ? others.flatMap { $0.keys }.filter { outputs[$0.stored] == nil } : []
        }
        return outputs
    }

    /// Begins to load a key in the background, unless a load of it runs or this code is a part of one.
    func loadInBackground(
        _ item: Item, _ lead: @escaping @Sendable (Ticket) async -> Void,
        failed: @escaping @Sendable (any Error) -> Void
    ) {
        let tickets: (own: Ticket?, others: [Ticket])
        do throws(CacheError) { tickets = try join([item], isSynchronous: false) } catch { return }
        for ticket in tickets.others { leave(ticket) }
        guard let own = tickets.own else { return }
        run(own) {
            await lead(own)
            do { try self.take(own) } catch { failed(error) }
        }
    }
}

/// The loads that the running code is a part of.
enum LoadChain {
    /// The numbers of the loads, the outermost first; in synchronous code outside tasks the value belongs to the thread.
    @TaskLocal static var current: [Int] = []

    private static let lastNumber = Atomic(0)

    /// A number for a load or a caller that no other one in the process has.
    static func newNumber() -> Int { lastNumber.add(1, ordering: .relaxed).newValue }

    static func entering<R>(_ load: Int, _ body: () throws -> R) rethrows -> R {
        try $current.withValue(current + [load], operation: body)
    }
}
