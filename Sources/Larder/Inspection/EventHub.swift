internal import Synchronization

/// Hands each event to every stream that listens, without ever waiting for one.
package final class EventHub: Sendable {
    /// How many events wait in a stream; beyond that the oldest goes.
    package static let capacity = 1000

    private struct State {
        var listeners: [Int: Listener] = [:]
        var nextListener = 0
        var isFinished = false
        /// What happened before anybody listened, the newest last: opening a store has no other way to tell.
        private var early: [CacheEvent] = []

        /// Keeps up to twice as many as count, so that most events move none of the others.
        mutating func keep(_ event: CacheEvent) {
            if early.count == 2 * EventHub.capacity { early.removeFirst(EventHub.capacity) }
            early.append(event)
        }

        mutating func takeEarly() -> ArraySlice<CacheEvent> {
            defer { early = [] }
            return early.suffix(EventHub.capacity)
        }
    }

    private struct Listener {
        let continuation: AsyncStream<CacheEvent>.Continuation
        var lost = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// A new stream: events from now on, and for the first stream those of the opening as well.
    package func stream() -> AsyncStream<CacheEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CacheEvent.self, bufferingPolicy: .bufferingNewest(Self.capacity))
        let id = state.withLock { state in
            defer { state.nextListener += 1 }
            // Under the lock, so that they come before what is sent next.
            for event in state.takeEarly() { continuation.yield(event) }
            if state.isFinished { continuation.finish() }
            state.listeners[state.nextListener] = Listener(continuation: continuation)
            return state.nextListener
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[id] = nil }
        }
        return stream
    }

    /// Sends `event` to every stream; keeps it for the first one if none was made yet.
    package func send(_ event: CacheEvent) {
        state.withLock { state in
            if state.nextListener == 0 { state.keep(event) }
            for id in Array(state.listeners.keys) {
                var event = event
                event.lostBefore = state.listeners[id]?.lost ?? 0
                if case .dropped = state.listeners[id]?.continuation.yield(event) { state.listeners[id]?.lost += 1 }
            }
        }
    }

    /// How many streams listen.
    package var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Ends every stream, once what waits in it was taken.
    package func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.continuation.finish() }
    }
}
