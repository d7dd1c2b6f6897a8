import LarderStore
import LarderTestSupport

/// A time that a test moves by hand: what is due runs on the thread that moves it.
final class StoreClock: Sendable {
    private struct Call: Sendable {
        let id: Int
        let moment: Int64
        let action: @Sendable () -> Void
    }

    private struct State: Sendable {
        var now: Int64 = 1_000_000
        var calls: [Call] = []
        var nextID = 0
    }

    private let state = Locked(State())

    var now: Int64 { state.value.now }
    /// The moments of the calls that are to come.
    var pending: [Int64] { state.value.calls.map(\.moment).sorted() }

    var time: StoreTime {
        StoreTime(now: { self.now }) { delay, action in
            let id = self.state.change { state in
                state.nextID += 1
                state.calls.append(Call(id: state.nextID, moment: state.now + delay, action: action))
                return state.nextID
            }
            return { self.state.change { $0.calls.removeAll { $0.id == id } } }
        }
    }

    /// Moves the time on, and runs what is due in the order of its moments.
    func advance(_ milliseconds: Int64) {
        let end = now + milliseconds
        while true {
            let due = state.change { state -> Call? in
                let first = state.calls.min { ($0.moment, $0.id) < ($1.moment, $1.id) }
                guard let first, first.moment <= end else {
                    state.now = end
                    return nil
                }
                state.now = max(state.now, first.moment)
                state.calls.removeAll { $0.id == first.id }
                return first
            }
            guard let due else { return }
            due.action()
        }
    }
}
