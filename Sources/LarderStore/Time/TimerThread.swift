internal import Dispatch
internal import Foundation
internal import LarderLocks

/// Fires due wakeups: brief ones on its own thread, each other one on a thread of its own.
///
/// Dispatch's timers need file descriptors, and end the process if there are none; a cache must not. So a thread waits
/// on a semaphore while there are wakeups, and ends when there are none.
package final class TimerThread: Sendable {
    static let ofProcess: TimerThread = TimerThread(startThread: startThreadOfSystem)

    private static func startThreadOfSystem() -> Bool {
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        // The closure of a C function captures nothing, so the thread finds its job in the queue.
        let error = pthread_create(
            &thread, nil,
            { _ in
                TimerThread.ofProcess.runNextJob()
                return nil
            }, nil)
        if error != 0 { return false }
        #if canImport(Darwin)
        if let thread { pthread_detach(thread) }
        #else
        pthread_detach(thread)
        #endif
        return true
    }

    /// The work of a new thread.
    private enum Job {
        case timer
        case action(@Sendable () -> Void)
    }

    private struct State {
        var waiting = WakeupHeap<DispatchTime>()
        /// The jobs of threads that were started and have not begun, in any order.
        var jobs: [Job] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let change = DispatchSemaphore(value: 0)
    private let startThread: @Sendable () -> Bool

    /// - Parameter startThread: Starts a thread that calls ``runNextJob()`` once; returns false if none can be started.
    package init(startThread: @escaping @Sendable () -> Bool) { self.startThread = startThread }

    /// The number of wakeups that wait.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Fires `wakeup` once `delay` has passed.
    package func fire(_ wakeup: Wakeup, after delay: Duration) {
        let due = DispatchTime.now() + max(0, delay / .seconds(1))
        let (starts, isSoonest) = state.withLock { state in
            state.waiting.insert(wakeup, at: due)
            defer { state.isRunning = true }
            if !state.isRunning { state.jobs.append(.timer) }
            return (!state.isRunning, state.waiting.first?.wakeup === wakeup)
        }
        if starts { start() } else if isSoonest { change.signal() }
    }

    /// Forgets a wakeup that was cancelled.
    package func remove(_ wakeup: Wakeup) {
        let removed = state.withLock { $0.waiting.remove(wakeup) }
        withExtendedLifetime(removed) {}
    }

    /// Begins the work of a thread that was started.
    package func runNextJob() {
        switch state.withLock({ $0.jobs.popLast() }) {
        case .timer?: run()
        case .action(let action)?: action()
        case nil: break
        }
    }

    private func start() {
        if startThread() { return }
        // As many jobs are left as threads were started, so any of them can be the one that gets none.
        state.withLock { state in
            switch state.jobs.popLast() {
            // The next call of `fire` tries again.
            case .timer?: state.isRunning = false
            // There may be a thread in a moment.
            case .action(let action)?: state.waiting.insert(Wakeup(action), at: .now() + .milliseconds(100))
            case nil: break
            }
        }
    }

    private enum Step {
        case begin(Wakeup)
        case wait(DispatchTime)
        case end
    }

    private func run() {
        while true {
            let step = state.withLock { state -> Step in
                guard let next = state.waiting.first else {
                    state.isRunning = false
                    return .end
                }
                guard next.due <= .now() else { return .wait(next.due) }
                return .begin(state.waiting.removeFirst())
            }
            switch step {
            case .begin(let wakeup):
                // What is left may take time, and must not delay the next wakeup.
                if let rest = wakeup.begin() {
                    state.withLock { $0.jobs.append(.action(rest)) }
                    start()
                }
            case .wait(let due): _ = change.wait(timeout: due)
            case .end: return
            }
        }
    }
}

extension DispatchSemaphore {
    /// Waits for a signal; returns false if none came in time.
    func wait(atMost duration: Duration) -> Bool { wait(timeout: .now() + duration / .seconds(1)) == .success }
}

/// The waiting wakeups as a binary heap, soonest first.
///
/// Each wakeup knows its place, so a cancelled one is removed at once and does not wait with its action.
package struct WakeupHeap<Moment: Comparable & Sendable>: Sendable {
    package typealias Item = (due: Moment, wakeup: Wakeup)

    private var items: [Item] = []

    package init() {}

    package var count: Int { items.count }
    package var first: Item? { items.first }

    /// - Complexity: O(log n)
    package mutating func insert(_ wakeup: Wakeup, at due: Moment) {
        items.append((due, wakeup))
        moveUp((due, wakeup), from: items.count - 1)
    }

    /// Removes the first wakeup.
    ///
    /// - Complexity: O(log n)
    package mutating func removeFirst() -> Wakeup { remove(at: 0) }

    /// Removes a wakeup, and returns it if it was in the heap.
    ///
    /// - Complexity: O(log n)
    package mutating func remove(_ wakeup: Wakeup) -> Wakeup? {
        let place = wakeup.place.load(ordering: .relaxed)
        guard items.indices.contains(place), items[place].wakeup === wakeup else { return nil }
        return remove(at: place)
    }

    private mutating func remove(at place: Int) -> Wakeup {
        let (removed, last) = (items[place].wakeup, items.removeLast())
        removed.place.store(-1, ordering: .relaxed)
        if place == items.count { return removed }
        if place > 0, last.due < items[(place - 1) / 2].due {
            moveUp(last, from: place)
        } else {
            moveDown(last, from: place)
        }
        return removed
    }

    private mutating func moveUp(_ item: Item, from start: Int) {
        var place = start
        while place > 0, item.due < items[(place - 1) / 2].due {
            put(items[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(item, at: place)
    }

    private mutating func moveDown(_ item: Item, from start: Int) {
        var place = start
        while 2 * place + 1 < items.count {
            var child = 2 * place + 1
            if child + 1 < items.count, items[child + 1].due < items[child].due { child += 1 }
            if item.due <= items[child].due { break }
            put(items[child], at: place)
            place = child
        }
        put(item, at: place)
    }

    private mutating func put(_ item: Item, at place: Int) {
        items[place] = item
        item.wakeup.place.store(place, ordering: .relaxed)
    }
}
