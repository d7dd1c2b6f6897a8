internal import LarderLocks

/// Hands each event to every stream that listens, without ever waiting for one.
package final class EventHub: Sendable {
    /// The maximum number of events that wait in a stream; beyond it the oldest is dropped.
    package static let capacity = 1000

    private final class Listener: Sendable {
        let continuation: AsyncStream<CacheEvent>.Continuation
        private let lost = Atomic(0)

        init(_ continuation: AsyncStream<CacheEvent>.Continuation) { self.continuation = continuation }

        func send(_ event: CacheEvent) {
            var event = event
            event.lostBefore = lost.load(ordering: .relaxed)
            if case .dropped = continuation.yield(event) { lost.add(1, ordering: .relaxed) }
        }
    }

    private struct State {
        var listeners: [Int: Listener] = [:]
        var lastListener = 0
        var isFinished = false
        /// The newest events before there was any stream: opening a store has no other way to report them.
        var early: [CacheEvent] = []
    }

    private let state = Mutex(State())
    private let listenerFlag = Atomic(false)

    package init() {}

    /// A Boolean value that indicates whether there is a stream.
    var hasListeners: Bool { listenerFlag.load(ordering: .relaxed) }

    /// Returns a new stream: events from now on, and for the first stream those of the opening as well.
    package func stream() -> AsyncStream<CacheEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CacheEvent.self, bufferingPolicy: .bufferingNewest(Self.capacity))
        let (id, isFinished) = state.withLock { state in
            let listener = Listener(continuation)
            // No reader waits for them yet.
            for event in state.early { listener.send(event) }
            state.early = []
            state.lastListener += 1
            if !state.isFinished { state.listeners[state.lastListener] = listener }
            listenerFlag.store(!state.listeners.isEmpty, ordering: .relaxed)
            return (state.lastListener, state.isFinished)
        }
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        if isFinished { continuation.finish() }
        return stream
    }

    private func remove(_ id: Int) {
        let old = state.withLock { state in
            defer { listenerFlag.store(!state.listeners.isEmpty, ordering: .relaxed) }
            return state.listeners.removeValue(forKey: id)
        }
        _ = consume old
    }

    /// Sends `event` to every stream; keeps it for the first one if none was created yet.
    package func send(_ event: CacheEvent) {
        let listeners = state.withLock { state in
            if state.lastListener == 0 {
                if state.early.count == 2 * Self.capacity { state.early.removeFirst(Self.capacity) }
                state.early.append(event)
            }
            return Array(state.listeners.values)
        }
        // A reader may be woken by an executor of the program's.
        for listener in listeners { listener.send(event) }
    }

    /// The number of streams.
    package var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Ends every stream, once its waiting events were taken.
    package func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            listenerFlag.store(false, ordering: .relaxed)
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.continuation.finish() }
    }
}
