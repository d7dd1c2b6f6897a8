import Foundation
import Larder
import Synchronization

/// What ten thousand callers of one missing key cost, and what it costs a write that somebody looks on.
var sharingScenarios: [Scenario] {
    let store = Lazily { RecordStore(entries: 0) }
    let callers = 10_000
    var key = 0
    return [
        Scenario(
            "callers-of-one-key", unit: "us",
            [
                Variant("10,000 callers") {
                    key += 1
                    return callingAtOnce(store.value, key, callers)
                },
                Variant("one caller") {
                    key += 1
                    return callingAtOnce(store.value, key, 1)
                },
            ]),
        Scenario(
            "write-observed", target: 1.05,
            [
                Variant("observed") { writing(store.value, isObserved: true) },
                Variant("not observed") { writing(store.value, isObserved: false) },
            ]),
    ]
}

/// Microseconds until everybody has the value.
///
/// Tasks on their own: a group looks for each child that ends in a list of all, which took half of the time.
private func callingAtOnce(_ store: RecordStore, _ key: Int, _ count: Int) -> Double {
    let countdown = Countdown(count)
    let cache = store.cache
    return nanoseconds(per: 1000) {
        for _ in 0..<count {
            Task {
                do {
                    let record = try await cache.value(forKey: key) { key in
                        await Task.yield()
                        return Record(key)
                    }
                    consume(record)
                } catch {
                    preconditionFailure("\(error)")
                }
                countdown.step()
            }
        }
        countdown.wait()
    }
}

/// Lets a thread wait until so many have come by.
private final class Countdown: Sendable {
    private let left: Mutex<Int>
    private let done = DispatchSemaphore(value: 0)

    init(_ count: Int) { left = Mutex(count) }

    func step() {
        let isLast = left.withLock { left in
            left -= 1
            return left == 0
        }
        if isLast { done.signal() }
    }

    func wait() { done.wait() }
}

private func writing(_ store: RecordStore, isObserved: Bool) -> Double {
    let stream = isObserved ? store.cache.changes(every: .seconds(3600)) : nil
    defer { withExtendedLifetime(stream) {} }
    let records = (0..<2000).map { Record($0) }
    return nanoseconds(per: records.count) {
        for record in records { store.cache[1_000_000 + record.id] = record }
    }
}
