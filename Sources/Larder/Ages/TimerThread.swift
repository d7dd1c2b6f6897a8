internal import Dispatch
internal import Foundation
internal import LarderLocks

/// Fires due wakeups, on threads of its own.
///
/// Dispatch's timers need file descriptors, and end the process if there are none; a cache must not. So a thread waits
/// on a semaphore while there are wakeups, and ends when there are none.
final class TimerThread: Sendable {
    static let shared = TimerThread()

    private struct State {
        /// The waiting wakeups, soonest last.
        var waiting: [(due: DispatchTime, wakeup: Wakeup)] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let change = DispatchSemaphore(value: 0)

    /// Fires `wakeup` once `delay` has passed.
    func fire(_ wakeup: Wakeup, after delay: Duration) {
        let due = DispatchTime.now() + max(0, delay / .seconds(1))
        let starts = state.withLock { state in
            let place = state.waiting.firstIndex { $0.due < due } ?? state.waiting.endIndex
            state.waiting.insert((due, wakeup), at: place)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if starts {
            Thread.detachNewThread { [self] in run() }
        } else {
            change.signal()
        }
    }

    /// Forgets a wakeup that was cancelled.
    func remove(_ wakeup: Wakeup) { state.withLock { $0.waiting.removeAll { $0.wakeup === wakeup } } }

    private enum Step {
        case fire(Wakeup)
        case wait(DispatchTime)
        case end
    }

    private func run() {
        while true {
            let step = state.withLock { state -> Step in
                guard let next = state.waiting.last else {
                    state.isRunning = false
                    return .end
                }
                guard next.due <= .now() else { return .wait(next.due) }
                state.waiting.removeLast()
                return .fire(next.wakeup)
            }
            switch step {
            // The action may take time, and must not delay the next wakeup.
            case .fire(let wakeup): Thread.detachNewThread { wakeup.fire() }
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
