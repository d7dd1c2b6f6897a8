/// What a load does in a task of its own.
///
/// It must not block.
package struct LoadPlan<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    /// Returns the values that are stored already: another load may have ended since the caller looked.
    let find: @Sendable ([Key]) async throws -> [Key: Output]
    /// Loads values, stores them as far as the permit goes, and returns what callers get.
    ///
    /// Keys may stay without a value.
    let load: @Sendable ([Key], LoadPermit<Key>) async throws -> [Key: Output]

    package init(
        find: @escaping @Sendable ([Key]) async throws -> [Key: Output],
        load: @escaping @Sendable ([Key], LoadPermit<Key>) async throws -> [Key: Output]
    ) {
        self.find = find
        self.load = load
    }
}

extension Loads {
    /// Returns the values of keys: those that other calls load, and those that the plan loads in a task of its own.
    ///
    /// - Parameter plan: Created by the caller that leads, so that it costs nothing where callers join.
    package func values(
        forKeys keys: some Sequence<Key>, _ rules: LoadRules<Key, Output> = .init(),
        _ plan: () -> LoadPlan<Key, Output>
    ) async throws -> [Key: Output] {
        var answers = LoadAnswers(keys, rules)
        while true {
            let keys = answers.keysToAsk()
            if keys.isEmpty { return answers.values }
            do {
                let (values, led) = try await ask(keys, rules, plan)
                answers.add(values, led: led)
            } catch is LeaderCannotStore {
                try rules.checkStoring()
            }
        }
    }

    /// Returns the values of keys: those that other calls load, and those that `load` loads on this thread.
    ///
    /// The thread waits for other loads. Inside a task, or inside a load, it does not wait for an asynchronous one.
    package func values(
        forKeys keys: some Sequence<Key>, _ rules: LoadRules<Key, Output> = .init(),
        find: ([Key]) throws -> [Key: Output], load: ([Key], LoadPermit<Key>) throws -> [Key: Output]
    ) throws -> [Key: Output] {
        var answers = LoadAnswers(keys, rules)
        while true {
            let keys = answers.keysToAsk()
            if keys.isEmpty { return answers.values }
            do {
                let (values, led) = try ask(keys, rules, find, load)
                answers.add(values, led: led)
            } catch is LeaderCannotStore {
                try rules.checkStoring()
            }
        }
    }

    /// Begins to load values in the background, for the keys that are not being loaded.
    ///
    /// No caller waits, and callers may join.
    ///
    /// Nothing cancels it. A failure is given to `onFailure`, and to the callers that joined.
    package func refresh(
        _ keys: [Key], _ plan: LoadPlan<Key, Output>, _ rules: LoadRules<Key, Output> = .init(),
        onFailure: @escaping @Sendable ([Key], any Error) -> Void
    ) {
        guard let (load, keys) = begin(keys) else { return }
        lead(load, keys, rules, plan) { onFailure(keys, $0) }
    }

    /// Joins or leads, and waits.
    private func ask(
        _ keys: [Key], _ rules: LoadRules<Key, Output>, _ plan: () -> LoadPlan<Key, Output>
    ) async throws -> (values: [Key: Output], led: [Key]) {
        let caller = newCaller()
        // The handler may have come too late to find the caller.
        defer { if Task.isCancelled { forget(caller) } }
        var led: [Key] = []
        let values = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                switch join(keys, as: caller, .suspends, .task(continuation)) {
                case .leads(let load, let keys):
                    led = keys
                    lead(load, keys, rules, plan())
                case .joined: break
                case .wouldDeadlock(let key): continuation.resume(throwing: recursion(key))
                case .cancelled: continuation.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            leave(caller)
        }
        return (values, led)
    }

    private func lead(
        _ load: LoadID, _ keys: [Key], _ rules: LoadRules<Key, Output>, _ plan: LoadPlan<Key, Output>,
        onFailure: (@Sendable (any Error) -> Void)? = nil
    ) {
        run(load) { [self] in
            do {
                var missing = found(try await plan.find(keys), by: load)
                let unsure = resume(load)
                if !unsure.isEmpty { missing = found(try await plan.find(unsure), by: load) }
                if missing.isEmpty { return }
                try checkStoring(rules)
                finish(load, .success(try await plan.load(missing, permit(for: load))))
            } catch {
                finish(load, .failure(error))
                onFailure?((error as? LeaderCannotStore)?.error ?? error)
            }
        }
    }

    /// Joins or leads, and waits.
    private func ask(
        _ keys: [Key], _ rules: LoadRules<Key, Output>, _ find: ([Key]) throws -> [Key: Output],
        _ load: ([Key], LoadPermit<Key>) throws -> [Key: Output]
    ) throws -> (values: [Key: Output], led: [Key]) {
        let caller = BlockedCaller<[Key: Output]>()
        let isInTask = withUnsafeCurrentTask { $0 != nil }
        switch join(keys, as: newCaller(), isInTask ? .blocksTask : .blocks, .thread(caller)) {
        case .leads(let id, let led):
            LoadChain.$current.withValue(LoadChain.current + [id]) { lead(id, led, rules, find, load) }
            return (try caller.wait(), led)
        case .joined: return (try caller.wait(), [])
        case .wouldDeadlock(let key): throw recursion(key)
        case .cancelled: throw CancellationError()
        }
    }

    private func lead(
        _ id: LoadID, _ keys: [Key], _ rules: LoadRules<Key, Output>, _ find: ([Key]) throws -> [Key: Output],
        _ load: ([Key], LoadPermit<Key>) throws -> [Key: Output]
    ) {
        do {
            var missing = found(try find(keys), by: id)
            let unsure = resume(id)
            if !unsure.isEmpty { missing = found(try find(unsure), by: id) }
            if missing.isEmpty { return }
            try checkStoring(rules)
            finish(id, .success(try load(missing, permit(for: id))))
        } catch {
            finish(id, .failure(error))
        }
    }

    private func checkStoring(_ rules: LoadRules<Key, Output>) throws {
        do {
            try rules.checkStoring()
        } catch {
            throw LeaderCannotStore(error: error)
        }
    }

    private func permit(for load: LoadID) -> LoadPermit<Key> {
        LoadPermit { [self] in
            mayStore($0, of: load)
        } askIfBeaten: { [self] in
            isBeaten($0, of: load)
        } rememberAbsence: { [self] in
            noteAbsence($0, of: load, for: $1, now: $2)
        }
    }
}
