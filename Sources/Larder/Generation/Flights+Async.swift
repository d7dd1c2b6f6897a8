/// What a flight in a task of its own does, for one key or for many.
struct FlightPlan<Key: Hashable & Sendable, Made: Sendable, Output: Sendable>: Sendable {
    let find: @Sendable ([Key]) async throws -> [Key: Output]
    let generate: @Sendable ([Key]) async throws -> Made
    let store: @Sendable (Made, FlightPermit<Key>) throws -> [Key: Output]
}

extension FlightPlan {
    init(
        for key: Key,
        find: @escaping @Sendable (Key) async throws -> Output?,
        generate: @escaping @Sendable (Key) async throws -> Made,
        store: @escaping @Sendable (Key, Made, FlightPermit<Key>) throws -> Output
    ) {
        self.init(
            find: { _ in try await find(key).map { [key: $0] } ?? [:] },
            generate: { _ in try await generate(key) },
            store: { made, permit in [key: try store(key, made, permit)] })
    }
}

extension Flights {
    /// The value for a key: what another flight makes of it, or what `generate` does, in a task of its own.
    ///
    /// `find` must not block; `store` may, for it runs outside the pool.
    package func value<Made: Sendable>(
        forKey key: Key,
        find: @escaping @Sendable (Key) async throws -> Output?,
        generate: @escaping @Sendable (Key) async throws -> Made,
        store: @escaping @Sendable (Key, Made, FlightPermit<Key>) throws -> Output
    ) async throws -> Output {
        try await value(forKey: key) { FlightPlan(for: key, find: find, generate: generate, store: store) }
    }

    /// The same; the plan is made by who leads, and costs those who join nothing.
    func value<Made: Sendable>(
        forKey key: Key, _ plan: () -> FlightPlan<Key, Made, Output>
    ) async throws -> Output {
        while true {
            // Another's flight for several keys may have made nothing for this one.
            if let value = try await ride([key], plan).values[key] { return value }
        }
    }

    /// The values for many keys, of which those that nobody else makes are made by one call; some may stay without one.
    package func values<Made: Sendable>(
        forKeys keys: some Sequence<Key>,
        find: @escaping @Sendable ([Key]) async throws -> [Key: Output],
        generate: @escaping @Sendable ([Key]) async throws -> Made,
        store: @escaping @Sendable (Made, FlightPermit<Key>) throws -> [Key: Output]
    ) async throws -> [Key: Output] {
        let plan = FlightPlan(find: find, generate: generate, store: store)
        var gathering = FlightGathering<Key, Output>(keys)
        while !gathering.rest.isEmpty { gathering.add(try await ride(gathering.rest) { plan }) }
        return gathering.values
    }

    /// Begins to make the value in the background, unless that is underway; nobody waits, others may join.
    ///
    /// Nothing cancels it. Its failure is given to `onFailure`, and to those who joined.
    package func refresh<Made: Sendable>(
        _ key: Key,
        find: @escaping @Sendable (Key) async throws -> Output?,
        generate: @escaping @Sendable (Key) async throws -> Made,
        store: @escaping @Sendable (Key, Made, FlightPermit<Key>) throws -> Output,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) {
        guard let (flight, keys) = begin([key]) else { return }
        lead(flight, keys, FlightPlan(for: key, find: find, generate: generate, store: store), onFailure)
    }

    /// Joins or leads, and waits.
    private func ride<Made>(
        _ keys: [Key], _ plan: () -> FlightPlan<Key, Made, Output>
    ) async throws -> FlightLanding<Key, Output> {
        let caller = newCaller()
        // The handler may have come too late to find the caller.
        defer { if Task.isCancelled { forget(caller) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                switch join(keys, as: caller, .suspends, .task(continuation)) {
                case .aboard(let flight?, let led): lead(flight, led, plan())
                case .aboard(nil, _): break
                case .circle(let key): continuation.resume(throwing: recursion(key))
                case .cancelled: continuation.resume(throwing: CancellationError())
                }
            }
        } onCancel: {
            leave(caller)
        }
    }

    private func lead<Made>(
        _ flight: FlightID, _ keys: [Key], _ plan: FlightPlan<Key, Made, Output>,
        _ onFailure: (@Sendable (any Error) -> Void)? = nil
    ) {
        run(flight) { [self] in
            do {
                var missing = found(try await plan.find(keys), by: flight)
                let unsure = resume(flight)
                if !unsure.isEmpty { missing = found(try await plan.find(unsure), by: flight) }
                guard !missing.isEmpty else { return }
                let made = try await plan.generate(missing)
                // Threads may be waiting for this storing that the pool lacks, so it needs none of the pool's.
                let chain = FlightChain.current
                handOff { [self] in
                    // A codec may ask for what is being made, too.
                    let result = FlightChain.$current.withValue(chain) {
                        Result { try plan.store(made, permit(for: flight)) }
                    }
                    finish(flight, result)
                    if case .failure(let error) = result { onFailure?(error) }
                }
            } catch {
                finish(flight, .failure(error))
                onFailure?(error)
            }
        }
    }
}
