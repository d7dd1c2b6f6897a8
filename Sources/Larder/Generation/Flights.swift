#if LARDER_TSAN
internal import LarderTSan
public import struct Synchronization.Atomic
#else
public import Synchronization
#endif

/// Single flight: callers that miss the same key at once share one run of one generator.
///
/// The rules are those of `FlightMachine`. This class locks, asks, unlocks, and acts: it wakes callers, begins and cancels
/// generations. A generator, what finds, and what stores run under no lock.
///
/// Of the caller come three closures. *Find* looks once more whether a value is there, when the flight has begun: another
/// flight may have landed since the caller looked. *Generate* makes what is missing. *Store* turns what was made into what
/// callers get, once per flight and before they are woken, and stores it if its permit says so.
@usableFromInline
package final class Flights<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    enum Waker {
        case task(CheckedContinuation<FlightLanding<Key, Output>, any Error>)
        case thread(BlockedCaller<Key, Output>)

        func wake(with result: Result<FlightLanding<Key, Output>, any Error>) {
            switch self {
            case .task(let continuation): continuation.resume(with: result)
            case .thread(let caller): caller.wake(with: result)
            }
        }
    }

    private struct State {
        var machine = FlightMachine<Key, Output>()
        var wakers: [FlightCallerID: Waker] = [:]
        /// The generations that run in tasks of their own.
        var generations: [FlightID: Task<Void, Never>] = [:]
    }

    /// Taken before the lock of the process's graph, and never held over user code but a key's own `==` and `hash`.
    private let state = Mutex(State())
    /// Whether any key has a flight, so that writers need no lock while there is none.
    @usableFromInline let isFlying = Atomic(false)
    private let lastCaller = Atomic(0)
    private let name: String

    /// Flights for the cache of this name, which stands in messages.
    package init(name: String) {
        self.name = name
    }

    // MARK: - Writes from elsewhere

    /// Notes that a key was set, updated or removed, but not by a flight's own storing: what is underway for it stays unstored.
    ///
    /// To be called where the order of writes is decided, before a later storing asks its permit, and again when readers see
    /// the write, if that is later. Without flights it costs one load.
    ///
    /// - Returns: What is to be released where nothing is held: keys, and what was made for them.
    @inlinable
    package func noteWrite(_ key: Key) -> (any Sendable)? {
        isFlying.load(ordering: .sequentiallyConsistent) ? interrupt(key) : nil
    }

    @usableFromInline
    func interrupt(_ key: Key) -> (any Sendable)? { act { machine, graph in machine.noteWrite(key, &graph) } }

    /// Notes that all keys were removed; what it gives back is to be released as with one.
    package func noteClear() -> (any Sendable)? {
        guard isFlying.load(ordering: .sequentiallyConsistent) else { return nil }
        return act { machine, graph in machine.noteClear(&graph) }
    }

    // MARK: - Inspection

    /// How many callers wait.
    package var waitingCount: Int { state.withLock { $0.machine.callerCount } }

    /// Whether no flight is underway.
    package var isIdle: Bool { state.withLock { $0.machine.isIdle && $0.generations.isEmpty } }

    // MARK: - Acting

    func newCaller() -> FlightCallerID {
        FlightCallerID(lastCaller.add(1, ordering: .relaxed).newValue)
    }

    func join(
        _ keys: [Key], as caller: FlightCallerID, _ manner: FlightCallerManner, _ waker: Waker
    ) -> FlightBoarding<Key> {
        let chain = FlightChain.current
        return state.withLock { state in
            let boarding = FlightGraph.shared.withLock { graph in
                state.machine.join(keys, as: caller, in: chain, manner, &graph)
            }
            if case .aboard = boarding { state.wakers[caller] = waker }
            isFlying.store(!state.machine.isIdle, ordering: .sequentiallyConsistent)
            return boarding
        }
    }

    func begin(_ keys: [Key]) -> (FlightID, [Key])? {
        state.withLock { state in
            let flight = FlightGraph.shared.withLock { graph in state.machine.begin(keys, &graph) }
            isFlying.store(!state.machine.isIdle, ordering: .sequentiallyConsistent)
            return flight
        }
    }

    func leave(_ caller: FlightCallerID) {
        _ = act { machine, graph in machine.leave(caller, &graph) }
    }

    func forget(_ caller: FlightCallerID) {
        state.withLock { $0.machine.forget(caller) }
    }

    /// Notes what the flight has found, and says which keys it still has to make.
    func found(_ values: [Key: Output], by flight: FlightID) -> [Key] {
        if !values.isEmpty { _ = act { machine, graph in machine.found(values, by: flight, &graph) } }
        return state.withLock { $0.machine.openKeys(of: flight) }
    }

    /// The keys that were written or cleared while the flight looked, which it looks for once more.
    ///
    /// Its own look may be what noticed another process's clear.
    func resume(_ flight: FlightID) -> [Key] {
        state.withLock { state in
            let keys = state.machine.resume(flight)
            isFlying.store(!state.machine.isIdle, ordering: .sequentiallyConsistent)
            return keys
        }
    }

    func finish(_ flight: FlightID, _ result: Result<[Key: Output], any Error>) {
        _ = act { machine, graph in
            switch result {
            case .success(let values): machine.finish(flight, with: values, &graph)
            case .failure(let error): machine.finish(flight, throwing: error, &graph)
            }
        }
        // The last reference must not go under the lock.
        withExtendedLifetime(result) {}
    }

    func permit(for flight: FlightID) -> FlightPermit<Key> {
        FlightPermit { [self] key in state.withLock { $0.machine.mayStore(key, of: flight) } }
    }

    /// Runs a generation in a task of its own, which can be cancelled from now on.
    func run(_ flight: FlightID, _ generation: @escaping @Sendable () async -> Void) {
        let task = Task {
            await FlightChain.$current.withValue([flight], operation: generation)
            state.withLock { $0.generations[flight] = nil }
        }
        let isOver = state.withLock { state in
            let isOver = !state.machine.isFlying(flight)
            if !isOver { state.generations[flight] = task }
            return isOver
        }
        if isOver { task.cancel() }
    }

    func recursion(_ key: Key) -> CacheError {
        CacheError(
            .recursiveGeneration,
            """
            cannot wait for a value for key \(key) of cache '\(name)': its generator waits for this very call; \
            let a generator ask only for keys whose generators do not ask for its own
            """)
    }

    /// Tells the machine what happened, and does what it says once the locks are released.
    ///
    /// - Returns: What that leaves: callers that were woken may be done already, and hold nothing of it any more.
    private func act(
        _ event: (inout FlightMachine<Key, Output>, inout FlightGraph) -> FlightEffects<Key, Output>
    ) -> (any Sendable)? {
        let (effects, wakers, generations) = state.withLock { state in
            let effects = FlightGraph.shared.withLock { graph in event(&state.machine, &graph) }
            let wakers = effects.groups.map { $0.callers.map { state.wakers.removeValue(forKey: $0) } }
            let generations = effects.ended.compactMap { state.generations.removeValue(forKey: $0) }
            isFlying.store(!state.machine.isIdle, ordering: .sequentiallyConsistent)
            return (effects, wakers, generations)
        }
        for generation in generations { generation.cancel() }
        for (group, wakers) in zip(effects.groups, wakers) {
            for waker in wakers { waker?.wake(with: group.result) }
        }
        return effects.isNothing ? nil : FlightRemains(effects: effects, wakers: wakers, generations: generations)
    }

    private struct FlightRemains: Sendable {
        let effects: FlightEffects<Key, Output>
        let wakers: [[Waker?]]
        let generations: [Task<Void, Never>]
    }
}
