internal import LarderLocks

/// Hands each event to every stream that listens, without ever waiting for one.
package final class EventHub: Sendable {
    /// The maximum number of events that wait in a stream; beyond it the oldest is dropped.
    package static let capacity = 1000

    private struct Listener {
        let continuation: AsyncStream<CacheEvent>.Continuation
        var lost = 0

        mutating func send(_ event: CacheEvent) {
            var event = event
            event.lostBefore = lost
            if case .dropped = continuation.yield(event) { lost += 1 }
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
            var listener = Listener(continuation: continuation)
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
        // Under the lock, so that all streams get the events in the same order.
        state.withLock { state in
            if state.lastListener == 0 {
                if state.early.count == Self.capacity { state.early.removeFirst() }
                state.early.append(event)
            }
            for id in state.listeners.keys { state.listeners[id]?.send(event) }
        }
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
