import Foundation
import Larder
import Synchronization

/// What many callers of missing keys cost, and what it costs a write that is watched.
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
                    return callingAtOnce(store.value, callers) { _ in key }
                },
                // What tasks cost that do nothing but wait for one of them.
                Variant("10,000 tasks alone") { waitingAtOnce(callers) },
                Variant("one caller") {
                    key += 1
                    return callingAtOnce(store.value, 1) { _ in key }
                },
            ]),
        Scenario(
            "callers-of-100-keys", unit: "us",
            [
                Variant("100 loads") {
                    key += 100
                    return callingAtOnce(store.value, 100) { [key] in key - $0 }
                },
                Variant("100 tasks alone") { waitingAtOnce(100) },
                Variant("100 sets") {
                    key += 100
                    return settingAtOnce(store.value, 100) { [key] in key - $0 }
                },
            ]),
        Scenario(
            "callers-batched", unit: "us",
            [
                Variant("10,000 keys, in calls of 100") {
                    key += callers
                    return gathering(store.value, callers, from: key, isBatched: true)
                },
                Variant("10,000 keys, one by one") {
                    key += callers
                    return gathering(store.value, callers, from: key, isBatched: false)
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
private func callingAtOnce(_ store: RecordStore, _ count: Int, _ key: (Int) -> Int) -> Double {
    let countdown = Countdown(count)
    let cache = store.cache
    return nanoseconds(per: 1000) {
        for number in 0..<count {
            let key = key(number)
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

/// Microseconds until all tasks have a key each, from an origin that takes 50 µs for a call.
private func gathering(_ store: RecordStore, _ count: Int, from first: Int, isBatched: Bool) -> Double {
    let (cache, origin, countdown) = (store.cache, Origin(), Countdown(count))
    let gathered = cache.batching { keys in
        await origin.call()
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, .value(Record($0))) })
    }
    return nanoseconds(per: 1000) {
        for key in first..<first + count {
            Task {
                do {
                    if isBatched {
                        consume(try await gathered(key))
                    } else {
                        consume(
                            try await cache.value(forKey: key) { key in
                                await origin.call()
                                return Record(key)
                            })
                    }
                } catch {
                    preconditionFailure("\(error)")
                }
                countdown.step()
            }
        }
        countdown.wait()
    }
}

/// What takes 50 µs for a call, and answers one after the other.
private actor Origin {
    func call() {
        let end = ContinuousClock.now + .microseconds(50)
        while ContinuousClock.now < end {}
    }
}

/// Microseconds until all tasks have written a key each.
private func settingAtOnce(_ store: RecordStore, _ count: Int, _ key: (Int) -> Int) -> Double {
    let countdown = Countdown(count)
    let cache = store.cache
    return nanoseconds(per: 1000) {
        for number in 0..<count {
            let record = Record(key(number))
            Task {
                do {
                    try await cache.setValue(record, forKey: record.id)
                } catch {
                    preconditionFailure("\(error)")
                }
                countdown.step()
            }
        }
        countdown.wait()
    }
}

/// Microseconds until as many tasks, which each wait with a handler for their cancellation, have been resumed.
private func waitingAtOnce(_ count: Int) -> Double {
    let countdown = Countdown(count)
    let gathering = Gathering(count)
    return nanoseconds(per: 1000) {
        for _ in 0..<count {
            Task {
                do {
                    try await withTaskCancellationHandler {
                        try await withCheckedThrowingContinuation { continuation in
                            for continuation in gathering.add(continuation) { continuation.resume() }
                        }
                    } onCancel: {
                    }
                } catch {
                    preconditionFailure("\(error)")
                }
                countdown.step()
            }
        }
        countdown.wait()
    }
}

/// Those who wait until all are there.
private final class Gathering: Sendable {
    private let waiting = Mutex<[CheckedContinuation<Void, any Error>]>([])
    private let count: Int

    init(_ count: Int) { self.count = count }

    /// - Returns: All of them, for the last one.
    func add(_ continuation: CheckedContinuation<Void, any Error>) -> [CheckedContinuation<Void, any Error>] {
        waiting.withLock { waiting in
            waiting.append(continuation)
            return waiting.count == count ? waiting : []
        }
    }
}

/// Lets a thread wait until so many have come by.
final class Countdown: Sendable {
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
