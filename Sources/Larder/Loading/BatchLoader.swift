internal import LarderLocks
package import LarderStore

/// Gathers keys that are loaded one by one, and loads those of a short time in one call.
///
/// It is what a load calls, so that writes, removals and callers that leave are the matter of the load. A load whose last caller has left
/// takes its key out of a window that has not begun.
package final class BatchLoader<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    package typealias Load = @Sendable ([Key]) async throws -> [Key: Generated<Value>]

    private struct Waiter {
        let key: Key
        /// The loads that the one which waits is a part of.
        let chain: [Int]
        let continuation: CheckedContinuation<Generated<Value>?, any Error>
    }

    /// A call of the program, and those who wait for it.
    private struct Batch {
        var waiters: [Int: Waiter]
        var task: Task<Void, Never>?
    }

    private struct State {
        /// Those who wait for the next call, in their order, by numbers.
        var order: [Int] = []
        var window: [Int: Waiter] = [:]
        var keys: Set<Key> = []
        var wakeup: Wakeup?
        var batches: [Int: Batch] = [:]
        var lastNumber = 0

        mutating func newNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }

        /// Makes a batch of those who wait, and returns its keys and the loads that it is a part of; nil if there are none.
        mutating func begin() -> Begun? {
            if window.isEmpty { return nil }
            let number = newNumber()
            var (seen, keys, chain) = (Set<Key>(), [Key](), [Int]())
            for waiter in order.compactMap({ window[$0] }) {
                if seen.insert(waiter.key).inserted { keys.append(waiter.key) }
                chain += waiter.chain
            }
            batches[number] = Batch(waiters: window)
            defer { (order, window, self.keys, wakeup) = ([], [:], [], nil) }
            return Begun(number: number, keys: keys, chain: chain, wakeup: wakeup)
        }
    }

    private struct Begun: Sendable {
        let number: Int
        let keys: [Key]
        let chain: [Int]
        let wakeup: Wakeup?
    }

    private let state = Mutex(State())
    private let window: Duration
    private let limit: Int
    private let timekeeper: Timekeeper
    private let load: Load

    /// - Parameters:
    ///   - window: The time from the first key to the call.
    ///   - limit: The number of keys with which the call does not wait any more.
    package init(window: Duration, limit: Int, _ timekeeper: Timekeeper, _ load: @escaping Load) {
        (self.window, self.limit, self.timekeeper, self.load) = (window, limit, timekeeper, load)
    }

    /// Throws if the window or the limit makes no sense.
    package func check(_ cache: String) throws(CacheError) {
        if window >= .zero, limit > 0 { return }
        throw CacheError(
            .invalidConfiguration,
            "A batching loader of cache \"\(cache)\" has a window of \(window) and a limit of \(limit). Use a window of zero or more, and"
                + " a limit of 1 or more.")
    }

    /// Returns the result of a key; nil if the call has none for it.
    package func value(_ key: Key) async throws -> Generated<Value>? {
        let number = state.withLock { $0.newNumber() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                wait(number, Waiter(key: key, chain: LoadChain.current, continuation: continuation))
            }
        } onCancel: {
            leave(number)
        }
    }

    private func wait(_ number: Int, _ waiter: Waiter) {
        let next = state.withLock { state -> BatchStep<Begun> in
            if Task.isCancelled { return .cancelled }
            state.order.append(number)
            state.window[number] = waiter
            state.keys.insert(waiter.key)
            if state.keys.count >= limit { return state.begin().map { .begin($0) } ?? .nothing }
            return state.window.count == 1 ? .wake : .nothing
        }
        switch next {
        case .nothing: break
        case .cancelled: waiter.continuation.resume(throwing: CancellationError())
        case .begin(let begun): run(begun)
        case .wake:
            let wakeup = timekeeper.wake(window) { [weak self] in self?.endWindow() }
            let isLate = state.withLock { state in
                if state.window.isEmpty || wakeup.isOver { return true }
                state.wakeup = wakeup
                return false
            }
            if isLate { wakeup.cancel() }
        }
    }

    private func endWindow() {
        if let begun = state.withLock({ $0.begin() }) { run(begun) }
    }

    private func run(_ begun: Begun) {
        begun.wakeup?.cancel()
        // The closure must not wait for one of the loads that wait for it.
        let task = LoadChain.$current.withValue(begun.chain) {
            Task {
                let result: Result<[Key: Generated<Value>], any Error>
                do { result = .success(try await load(begun.keys)) } catch { result = .failure(error) }
                let waiters = state.withLock { $0.batches.removeValue(forKey: begun.number)?.waiters ?? [:] }
                for waiter in waiters.values { waiter.continuation.resume(with: result.map { $0[waiter.key] }) }
            }
        }
        let isLeft = state.withLock { state in
            state.batches[begun.number]?.task = task
            return state.batches[begun.number]?.waiters.isEmpty ?? false
        }
        if isLeft { task.cancel() }
    }

    /// Takes one that was cancelled out of its window or its batch, which is cancelled when it was the last.
    private func leave(_ number: Int) {
        let (waiter, task, wakeup) = state.withLock { state -> (Waiter?, Task<Void, Never>?, Wakeup?) in
            if let waiter = state.window.removeValue(forKey: number) {
                if !state.window.values.contains(where: { $0.key == waiter.key }) { state.keys.remove(waiter.key) }
                if state.window.isEmpty { state.order = [] }
                return (waiter, nil, state.window.isEmpty ? state.wakeup.take() : nil)
            }
            for (batch, value) in state.batches {
                guard let waiter = value.waiters[number] else { continue }
                state.batches[batch]?.waiters[number] = nil
                return (waiter, value.waiters.count == 1 ? value.task : nil, nil)
            }
            return (nil, nil, nil)
        }
        wakeup?.cancel()
        task?.cancel()
        waiter?.continuation.resume(throwing: CancellationError())
    }
}

/// What is left to do after a key was added to a window.
private enum BatchStep<Begun: Sendable>: Sendable {
    case nothing, wake, cancelled
    case begin(Begun)
}

extension Cache {
    /// Returns a callable value whose calls for single keys become calls for many.
    ///
    /// ```swift
    /// let article = articles.batching { ids in try await api.articles(ids).mapValues { .value($0) } }
    /// let first = try await article(1)
    /// ```
    ///
    /// The keys that are missing within a short time are loaded by one call of `load`, and stored each for itself. A call of `load` that
    /// throws does so for the callers of its keys. Keys that it returns nothing for have no value.
    ///
    /// > Warning: `load` must not ask for a value whose own load uses this loader. Two callers can then wait for each other forever, unless
    /// the policy has a timeout.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values; refreshes are gathered too.
    ///   - window: The time from the first key to the call of `load`.
    ///   - limit: The number of keys with which `load` is called at once.
    ///   - load: Gets keys, each once, in the order in which they were asked for.
    public func batching(
        _ policy: GenerationPolicy = .init(), window: Duration = .milliseconds(2), limit: Int = 100,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Generated<Value>]
    ) -> ValueGenerator<Key, Value?> {
        let (batch, name) = (batchLoader(window: window, limit: limit, load), name)
        return generator(policy) { key, _ in
            try batch.check(name)
            return try await batch.value(key) ?? .none(for: .seconds(0))
        }
    }

    /// Makes a loader that gathers keys, on the clock of the cache.
    package func batchLoader(
        window: Duration, limit: Int, _ load: @escaping BatchLoader<Key, Value>.Load
    ) -> BatchLoader<Key, Value> { BatchLoader(window: window, limit: limit, manager.timekeeper, load) }
}
