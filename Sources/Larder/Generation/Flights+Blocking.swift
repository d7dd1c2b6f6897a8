extension Flights {
    /// The value for a key: what another flight makes of it, or what `generate` does, on this thread.
    ///
    /// The thread waits for other flights; inside a task only for such as need no thread of the pool.
    package func value<Made>(
        forKey key: Key,
        find: (Key) throws -> Output?,
        generate: (Key) throws -> Made,
        store: (Key, Made, FlightPermit<Key>) throws -> Output
    ) throws -> Output {
        while true {
            let landing = try ride([key]) { (keys) throws in
                try find(key).map { [key: $0] } ?? [:]
            } generate: { (_) throws in
                try generate(key)
            } store: { (made, permit) throws in
                [key: try store(key, made, permit)]
            }
            // Another's flight for several keys may have made nothing for this one.
            if let value = landing.values[key] { return value }
        }
    }

    /// The values for many keys, of which those that nobody else makes are made by one call; some may stay without one.
    package func values<Made>(
        forKeys keys: some Sequence<Key>,
        find: ([Key]) throws -> [Key: Output],
        generate: ([Key]) throws -> Made,
        store: (Made, FlightPermit<Key>) throws -> [Key: Output]
    ) throws -> [Key: Output] {
        var gathering = FlightGathering<Key, Output>(keys)
        while !gathering.rest.isEmpty {
            gathering.add(try ride(gathering.rest, find: find, generate: generate, store: store))
        }
        return gathering.values
    }

    /// Joins or leads, and waits.
    private func ride<Made>(
        _ keys: [Key], find: ([Key]) throws -> [Key: Output], generate: ([Key]) throws -> Made,
        store: (Made, FlightPermit<Key>) throws -> [Key: Output]
    ) throws -> FlightLanding<Key, Output> {
        let caller = BlockedCaller<Key, Output>()
        let isInTask = withUnsafeCurrentTask { $0 != nil }
        switch join(keys, as: newCaller(), isInTask ? .blocksPool : .blocks, .thread(caller)) {
        case .aboard(let flight?, let led):
            FlightChain.$current.withValue(FlightChain.current + [flight]) {
                lead(flight, led, find, generate, store)
            }
        case .aboard(nil, _): break
        case .circle(let key): throw recursion(key)
        case .cancelled: throw CancellationError()
        }
        return try caller.wait()
    }

    private func lead<Made>(
        _ flight: FlightID, _ keys: [Key], _ find: ([Key]) throws -> [Key: Output],
        _ generate: ([Key]) throws -> Made, _ store: (Made, FlightPermit<Key>) throws -> [Key: Output]
    ) {
        do {
            var missing = found(try find(keys), by: flight)
            let unsure = resume(flight)
            if !unsure.isEmpty { missing = found(try find(unsure), by: flight) }
            guard !missing.isEmpty else { return }
            let made = try generate(missing)
            finish(flight, .success(try store(made, permit(for: flight))))
        } catch {
            finish(flight, .failure(error))
        }
    }
}
