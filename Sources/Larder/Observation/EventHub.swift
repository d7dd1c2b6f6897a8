internal import Synchronization

/// Hands each event to every stream that listens, without ever waiting for one.
package final class EventHub: Sendable {
    /// How many events wait in a stream; beyond that the oldest goes.
    package static let capacity = 1000

    private struct State {
        var listeners: [Int: EventMailbox] = [:]
        var nextListener = 0
        var isFinished = false
        /// What happened before anybody listened: opening a store has no other way to tell.
        var early = EventQueue()
    }

    private let state = Mutex(State())

    package init() {}

    /// A new stream: events from now on, and for the first stream those of the opening as well.
    package func stream() -> AsyncStream<CacheEvent> {
        let reader = state.withLock { state -> EventReader in
            defer { state.nextListener += 1 }
            let id = state.nextListener
            let mailbox = EventMailbox(state.early)
            state.early = EventQueue()
            if state.isFinished { mailbox.finish() } else { state.listeners[id] = mailbox }
            return EventReader(mailbox) { [weak self] in self?.state.withLock { $0.listeners[id] = nil } }
        }
        return AsyncStream {
            await reader.mailbox.next()
        } onCancel: { [weak reader] in
            reader?.end()
        }
    }

    /// Sends `event` to every stream; keeps it for the first one if none was made yet.
    package func send(_ event: CacheEvent) {
        let listeners = state.withLock { state in
            if state.nextListener == 0 { state.early.add(event) }
            // Under the lock, so that all get it in the same order.
            return state.listeners.values.compactMap { $0.put(event) }
        }
        for wake in listeners { wake() }
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
        for listener in listeners { listener.finish() }
    }
}

/// The newest events of a stream, and how many older ones had to go.
private struct EventQueue: Sendable {
    private var events: [CacheEvent] = []
    /// Where the oldest that counts stands: the array is cut only now and then.
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

    /// The oldest event, with the number of those that were lost before it.
    mutating func take() -> CacheEvent? {
        guard start < events.count else { return nil }
        var event = events[start]
        start += 1
        if start == events.count { (events, start) = ([], 0) }
        event.lostBefore = lost
        return event
    }
}

/// What waits for the reader of one stream, or the reader that waits for it.
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

    /// - Returns: What wakes the reader, if one waits.
    func put(_ event: CacheEvent) -> (@Sendable () -> Void)? {
        state.withLock { state in
            state.queue.add(event)
            guard !state.readers.isEmpty, let next = state.queue.take() else { return nil }
            let reader = state.readers.removeFirst()
            return { reader.resume(returning: next) }
        }
    }

    /// The next event; nil at the end.
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

    /// Nothing comes any more.
    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.resume(returning: nil) }
    }
}

/// Held by a stream: with it the listening ends.
private final class EventReader: Sendable {
    let mailbox: EventMailbox
    private let onEnd: @Sendable () -> Void

    init(_ mailbox: EventMailbox, onEnd: @escaping @Sendable () -> Void) {
        self.mailbox = mailbox
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    /// Its task was cancelled.
    func end() {
        onEnd()
        mailbox.finish()
    }
}
