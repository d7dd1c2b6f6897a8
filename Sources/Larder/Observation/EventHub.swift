internal import LarderLocks

/// Hands each event to every stream that listens, without ever waiting for one.
package final class EventHub: Sendable {
    /// The maximum number of events that wait in a stream; beyond it the oldest is dropped.
    package static let capacity = 1000

    private struct State {
        var listeners: [Int: EventMailbox] = [:]
        var nextListener = 0
        var isFinished = false
        /// The events before there was any stream: opening a store has no other way to report them.
        var early = EventQueue()
    }

    private let state = Mutex(State())
    private let listenerFlag = Atomic(false)

    package init() {}

    /// A Boolean value that indicates whether there is a stream.
    var hasListeners: Bool { listenerFlag.load(ordering: .relaxed) }

    /// Returns a new stream: events from now on, and for the first stream those of the opening as well.
    package func stream() -> AsyncStream<CacheEvent> {
        let reader = state.withLock { state -> EventReader in
            defer { state.nextListener += 1 }
            let id = state.nextListener
            let mailbox = EventMailbox(state.early)
            state.early = EventQueue()
            if state.isFinished { mailbox.finish() } else { state.listeners[id] = mailbox }
            listenerFlag.store(!state.listeners.isEmpty, ordering: .relaxed)
            return EventReader(mailbox) { [weak self] in self?.remove(id) }
        }
        return AsyncStream {
            await reader.mailbox.next()
        } onCancel: { [weak reader] in
            reader?.end()
        }
    }

    private func remove(_ id: Int) {
        let old = state.withLock { state in
            defer { listenerFlag.store(!state.listeners.isEmpty, ordering: .relaxed) }
            return state.listeners.removeValue(forKey: id)
        }
        withExtendedLifetime(old) {}
    }

    /// Sends `event` to every stream; keeps it for the first one if none was created yet.
    package func send(_ event: CacheEvent) {
        let listeners = state.withLock { state in
            if state.nextListener == 0 { state.early.add(event) }
            // Under the lock, so that all streams get the events in the same order.
            return state.listeners.values.compactMap { $0.put(event) }
        }
        for wake in listeners { wake() }
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
        for listener in listeners { listener.finish() }
    }
}

/// The newest events of a stream, and the number of older ones that were dropped.
private struct EventQueue: Sendable {
    private var events: [CacheEvent] = []
    /// The index of the oldest valid event: the array is cut only now and then.
    private var start = 0
    private var lost = 0

    mutating func add(_ event: CacheEvent) {
        if events.count - start == EventHub.capacity {
            start += 1
            lost += 1
        }
        if start >= EventHub.capacity {
            events.removeFirst(start)
            start = 0
        }
        events.append(event)
    }

    /// Returns the oldest event, with the number of those that were lost before it.
    mutating func take() -> CacheEvent? {
        guard start < events.count else { return nil }
        var event = events[start]
        start += 1
        if start == events.count { (events, start) = ([], 0) }
        event.lostBefore = lost
        return event
    }
}

/// The events that wait for the reader of one stream, or the readers that wait for an event.
private final class EventMailbox: Sendable {
    private struct State {
        var queue: EventQueue
        var readers: [CheckedContinuation<CacheEvent?, Never>] = []
        var isFinished = false
    }

    private let state: Mutex<State>

    init(_ queue: EventQueue) {
        state = Mutex(State(queue: queue))
    }

    /// - Returns: A closure that wakes the reader, if one waits.
    func put(_ event: CacheEvent) -> (@Sendable () -> Void)? {
        state.withLock { state in
            state.queue.add(event)
            guard !state.readers.isEmpty, let next = state.queue.take() else { return nil }
            let reader = state.readers.removeFirst()
            return { reader.resume(returning: next) }
        }
    }

    /// Returns the next event; nil at the end.
    func next() async -> CacheEvent? {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state -> CacheEvent?? in
                if let event = state.queue.take() { return .some(event) }
                if state.isFinished { return .some(nil) }
                state.readers.append(continuation)
                return nil
            }
            if let event = isOver { continuation.resume(returning: event) }
        }
    }

    /// Ends the stream: no more events come.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.resume(returning: nil) }
    }
}

/// Held by a stream: its release ends the subscription.
private final class EventReader: Sendable {
    let mailbox: EventMailbox
    private let onEnd: @Sendable () -> Void

    init(_ mailbox: EventMailbox, onEnd: @escaping @Sendable () -> Void) {
        self.mailbox = mailbox
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    /// Ends the subscription because the reader's task was cancelled.
    func end() {
        onEnd()
        mailbox.finish()
    }
}
