/// Every call that loads values joins the loads that run, and leads one for the other keys.
extension Loads {
    /// Returns the outputs of keys; those for which no load runs are loaded in a task of their own.
    ///
    /// - Parameters:
    ///   - needsValue: A Boolean value that indicates whether keys for which the joined loads give nothing are loaded again.
    ///   - isLook: A Boolean value that indicates whether `lead` only looks for values.
    ///   - lead: Runs a load, and finishes it.
    func load(
        _ keys: [Item], needsValue: Bool, isLook: Bool = false, _ lead: @escaping @Sendable (Ticket) async -> Void
    ) async throws -> [ID: Output] {
        var (outputs, rest) = ([ID: Output](), keys)
        while !rest.isEmpty {
            try Task.checkCancellation()
            let (own, others) = try join(rest, isSynchronous: false, isLook: isLook)
            defer { for ticket in others { leave(ticket) } }
            if let own {
                run(own) { await lead(own) }
                outputs.merge(try await result(for: own)) { $1 }
            }
            for ticket in others { outputs.merge(try await result(for: ticket)) { $1 } }
            rest = needsValue ? others.flatMap { $0.keys }.filter { outputs[$0.stored] == nil } : []
        }
        return outputs
    }

    /// Returns the outputs of keys; those for which no load runs are loaded on this thread.
    func load(_ keys: [Item], needsValue: Bool, _ lead: (Ticket) -> Void) throws -> [ID: Output] {
        var (outputs, rest) = ([ID: Output](), keys)
        while !rest.isEmpty {
            let (own, others) = try join(rest, isSynchronous: true)
            defer { for ticket in others { leave(ticket) } }
            if let own {
                LoadChain.entering(own.load) { lead(own) }
                outputs.merge(try take(own)) { $1 }
            }
            for ticket in others { outputs.merge(try result(for: ticket)) { $1 } }
            rest = needsValue ? others.flatMap { $0.keys }.filter { outputs[$0.stored] == nil } : []
        }
        return outputs
    }

    /// Begins to load a key in the background, unless a load of it runs or this code is a part of one.
    func loadInBackground(
        _ item: Item, _ lead: @escaping @Sendable (Ticket) async -> Void,
        failed: @escaping @Sendable (any Error) -> Void
    ) {
        let tickets: (own: Ticket?, others: [Ticket])
        do throws(CacheError) { tickets = try join([item], isSynchronous: false) } catch { return }
        for ticket in tickets.others { leave(ticket) }
        guard let own = tickets.own else { return }
        run(own) {
            await lead(own)
            do { try self.take(own) } catch { failed(error) }
        }
    }
}
