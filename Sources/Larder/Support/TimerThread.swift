internal import Dispatch
internal import Foundation
internal import Synchronization

/// Wakes what has come due, on threads of its own.
///
/// Dispatch's timers need file descriptors, and end the process when there are none; a cache must not. So a thread waits on
/// a semaphore while anything is to come, and there is none while nothing is.
final class TimerThread: Sendable {
    static let shared = TimerThread()

    private struct State {
        /// What waits, soonest last.
        var waiting: [(due: DispatchTime, wakeup: Wakeup)] = []
        var isRunning = false
        /// At this length those that were cancelled go.
        var purgesAt = 64
    }

    private let state = Mutex(State())
    private let change = DispatchSemaphore(value: 0)

    /// Fires `wakeup` once `delay` has passed.
    func fire(_ wakeup: Wakeup, after delay: Duration) {
        let due = DispatchTime.now() + max(0, delay / .seconds(1))
        let starts = state.withLock { state in
            if state.waiting.count >= state.purgesAt {
                state.waiting.removeAll { $0.wakeup.isOver }
                state.purgesAt = max(64, 2 * state.waiting.count)
            }
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
            // Work may take its time, and must not hold up what comes due next.
            case .fire(let wakeup): Thread.detachNewThread { wakeup.fire() }
            case .wait(let due): _ = change.wait(timeout: due)
            case .end: return
            }
        }
    }
}

extension DispatchSemaphore {
    /// Waits for a signal; false if none came in time.
    func wait(atMost duration: Duration) -> Bool { wait(timeout: .now() + duration / .seconds(1)) == .success }
}
