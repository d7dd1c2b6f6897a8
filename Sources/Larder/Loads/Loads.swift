#if LARDER_TSAN
internal import LarderTSan
public import struct Synchronization.Atomic
#else
public import Synchronization
#endif

/// Single flight: callers that miss the same key at the same time share one load.
///
/// The rules are those of `LoadMachine`. This class locks, asks, unlocks, and acts: it wakes callers, begins and cancels
/// loads. No closure of a caller runs under its lock.
@usableFromInline
package final class Loads<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    enum Waker {
        case task(CheckedContinuation<[Key: Output], any Error>)
        case thread(BlockedCaller<[Key: Output]>)

        func wake(with result: Result<[Key: Output], any Error>) {
            switch self {
            case .task(let continuation): continuation.resume(with: result)
            case .thread(let caller): caller.wake(with: result)
            }
        }
    }

    private struct State {
        var machine = LoadMachine<Key, Output>()
        var wakers: [LoadCallerID: Waker] = [:]
        /// The loads that run in tasks of their own.
        var tasks: [LoadID: Task<Void, Never>] = [:]
    }

    /// Taken before the lock of the process's graph, and never held over user code but a key's own `==` and `hash`.
    private let state = Mutex(State())
    /// Whether any key has a load or is known to be absent, so that writers need no lock while there is none.
    @usableFromInline let isInUse = Atomic(false)
    private let lastCaller = Atomic(0)
    private let name: String

    /// - Parameter name: The name of the cache, for messages.
    package init(name: String) {
        self.name = name
    }

    // MARK: - Writes from elsewhere

    /// Notes that a key was set, updated or removed, but not by the storing of a load: loads that are underway for it store nothing.
    ///
    /// To be called where the order of writes is decided, before a later storing asks its permit, and again when readers see
    /// the write, if that is later. Where there is nothing to note it costs one load of an atomic.
    ///
    /// - Returns: What is to be released where nothing is held: keys, and what was made for them.
    @inlinable
    package func noteWrite(_ key: Key) -> (any Sendable)? {
        isInUse.load(ordering: .sequentiallyConsistent) ? interrupt(key) : nil
    }

    @usableFromInline
    func interrupt(_ key: Key) -> (any Sendable)? { act { machine, _ in machine.noteWrite(key) } }

    /// Notes that all keys were removed; what it gives back is to be released as with one.
    package func noteClear() -> (any Sendable)? {
        guard isInUse.load(ordering: .sequentiallyConsistent) else { return nil }
        return act { machine, _ in machine.noteClear() }
    }

    // MARK: - Inspection

    /// How many callers wait.
    package var waitingCount: Int { state.withLock { $0.machine.callerCount } }

    /// Whether no load is underway.
    package var isIdle: Bool { state.withLock { $0.machine.isIdle && $0.tasks.isEmpty } }

    // MARK: - Acting

    func newCaller() -> LoadCallerID {
        LoadCallerID(lastCaller.add(1, ordering: .relaxed).newValue)
    }

    func join(
        _ keys: [Key], as caller: LoadCallerID, _ wait: LoadWait, _ waker: Waker
    ) -> JoinResult<Key> {
        let chain = LoadChain.current
        return state.withLock { state in
            let result = LoadGraph.shared.withLock { graph in
                state.machine.join(keys, as: caller, in: chain, wait, &graph)
            }
            switch result {
            case .leads, .joined: state.wakers[caller] = waker
            case .wouldDeadlock, .cancelled: break
            }
            isInUse.store(!state.machine.isUnaffectedByWrites, ordering: .sequentiallyConsistent)
            return result
        }
    }

    func begin(_ keys: [Key]) -> (LoadID, [Key])? {
        state.withLock { state in
            let load = LoadGraph.shared.withLock { graph in state.machine.begin(keys, &graph) }
            isInUse.store(!state.machine.isUnaffectedByWrites, ordering: .sequentiallyConsistent)
            return load
        }
    }

    func leave(_ caller: LoadCallerID) {
        _ = act { machine, graph in machine.leave(caller, &graph) }
    }

    func forget(_ caller: LoadCallerID) {
        state.withLock { $0.machine.forget(caller) }
    }

    /// Notes the values that a load has found, and returns the keys that it still has to load.
    func found(_ values: [Key: Output], by load: LoadID) -> [Key] {
        if !values.isEmpty { _ = act { machine, graph in machine.found(values, by: load, &graph) } }
        return state.withLock { $0.machine.openKeys(of: load) }
    }

    /// The keys that were written or cleared while the load looked: it looks for them again.
    ///
    /// Its own look may be what noticed another process's clear.
    func resume(_ load: LoadID) -> [Key] {
        state.withLock { state in
            let keys = state.machine.resume(load)
            isInUse.store(!state.machine.isUnaffectedByWrites, ordering: .sequentiallyConsistent)
            return keys
        }
    }

    func finish(_ load: LoadID, _ result: Result<[Key: Output], any Error>) {
        _ = act { machine, graph in
            switch result {
            case .success(let values): machine.finish(load, with: values, &graph)
            case .failure(let error): machine.finish(load, throwing: error, &graph)
            }
        }
        // The last reference must not go under the lock.
        withExtendedLifetime(result) {}
    }

    func mayStore(_ key: Key, of load: LoadID) -> Bool { state.withLock { $0.machine.mayStore(key, of: load) } }

    func isBeaten(_ key: Key, of load: LoadID) -> Bool { state.withLock { $0.machine.isBeaten(key, of: load) } }

    func noteAbsence(_ key: Key, of load: LoadID, for rule: AgeRule, now: Int64) {
        let forgotten = state.withLock { state in
            defer { isInUse.store(!state.machine.isUnaffectedByWrites, ordering: .sequentiallyConsistent) }
            return state.machine.noteAbsence(key, of: load, for: rule, now: now)
        }
        withExtendedLifetime(forgotten) {}
    }

    /// Returns whether a key is known to have no value at a time in milliseconds.
    package func isAbsent(_ key: Key, now: Int64) -> Bool {
        isInUse.load(ordering: .sequentiallyConsistent) && state.withLock { $0.machine.isAbsent(key, now: now) }
    }

    /// Runs a load in a task of its own, which can be cancelled from now on.
    func run(_ load: LoadID, _ work: @escaping @Sendable () async -> Void) {
        let task = Task {
            await LoadChain.$current.withValue([load], operation: work)
            state.withLock { $0.tasks[load] = nil }
        }
        let isOver = state.withLock { state in
            let isOver = !state.machine.isRunning(load)
            if !isOver { state.tasks[load] = task }
            return isOver
        }
        if isOver { task.cancel() }
    }

    func recursion(_ key: Key) -> CacheError {
        CacheError(
            .recursiveGeneration,
            """
            The value for key \(key) of cache "\(name)" is being loaded by a closure that waits for this call. \
            Let a closure ask only for keys whose closures do not ask for its own.
            """)
    }

    /// Tells the machine what happened, and does what it says once the locks are released.
    ///
    /// - Returns: What that leaves: callers that were woken may be done already, and hold nothing of it any more.
    private func act(
        _ event: (inout LoadMachine<Key, Output>, inout LoadGraph) -> LoadEffects<Key, Output>
    ) -> (any Sendable)? {
        let (effects, wakers, tasks) = state.withLock { state in
            let effects = LoadGraph.shared.withLock { graph in event(&state.machine, &graph) }
            let wakers = effects.groups.map { $0.callers.map { state.wakers.removeValue(forKey: $0) } }
            let tasks = effects.ended.compactMap { state.tasks.removeValue(forKey: $0) }
            isInUse.store(!state.machine.isUnaffectedByWrites, ordering: .sequentiallyConsistent)
            return (effects, wakers, tasks)
        }
        for task in tasks { task.cancel() }
        for (group, wakers) in zip(effects.groups, wakers) {
            for waker in wakers { waker?.wake(with: group.result) }
        }
        return effects.isNothing ? nil : LoadRemains(effects: effects, wakers: wakers, tasks: tasks)
    }

    private struct LoadRemains: Sendable {
        let effects: LoadEffects<Key, Output>
        let wakers: [[Waker?]]
        let tasks: [Task<Void, Never>]
    }
}
