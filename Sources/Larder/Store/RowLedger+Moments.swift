package import LarderSQLite
internal import Synchronization

/// Reads of one moment, from the rows of the generation that is live then.
extension RowLedger {
    private enum Seen<R: Sendable>: Sendable {
        case here(R)
        /// The generation is another one than was thought.
        case elsewhere(R, GenerationBinding)
        /// In another database, where the next write makes one.
        case nowhere
        case superseded
    }

    /// Reads from the generation in one moment; nil if there is nothing to read from.
    package func readMoment<R: Sendable>(
        _ body: @Sendable (inout Connection, Int64) throws(SQLiteError) -> R
    ) throws(CacheError) -> R? {
        let (watch, binding, isSuperseded) = state.withLock { ($0.watch, $0.binding, $0.isSuperseded) }
        return isSuperseded ? nil : try readMoment(watch.round(), binding, body)
    }

    /// Reads from the generation as of a round or later; looks first whether it is still the live one, if anybody may have
    /// changed that.
    func readMoment<R: Sendable>(
        _ round: UInt32, _ body: @Sendable (inout Connection, Int64) throws(SQLiteError) -> R
    ) throws(CacheError) -> R? {
        let (binding, isSuperseded) = state.withLock { ($0.binding, $0.isSuperseded) }
        return isSuperseded ? nil : try readMoment(round, binding, body)
    }

    private func readMoment<R: Sendable>(
        _ round: UInt32, _ binding: GenerationBinding,
        _ body: @Sendable (inout Connection, Int64) throws(SQLiteError) -> R
    ) throws(CacheError) -> R? {
        let seen = try store.read { (connection, database) throws(SQLiteError) -> Seen<R> in
            if binding.database == database && binding.round == round && binding.id != 0 {
                return .here(try body(&connection, binding.id))
            }
            let isOther = binding.database != database
            // Most commits of others leave it alone, and its row is found with half of the pages that its name takes.
            if !isOther, binding.id != 0,
                try connection.isLive(binding.id, named: self.name, version: self.version, codec: self.codec)
            {
                let found = GenerationBinding(database: database, id: binding.id, root: binding.root, round: round)
                return .elsewhere(try body(&connection, binding.id), found)
            }
            guard let live = try connection.liveGeneration(named: self.name) else {
                // In a new database there is none yet; in the old one it was removed.
                return isOther ? .nowhere : .superseded
            }
            guard live.isOf(version: self.version, codec: self.codec), isOther || live.root == binding.root else {
                return binding.isAwaited ? .nowhere : .superseded
            }
            let found = GenerationBinding(database: database, id: live.id, root: live.root, round: round)
            return .elsewhere(try body(&connection, live.id), found)
        }
        switch seen {
        case .here(let result): return result
        case .elsewhere(let result, let binding):
            var discards = Discards()
            adopt(binding, &discards)
            store.release(discards)
            return result
        case .nowhere: return nil
        case .superseded:
            var discards = Discards()
            supersede(&discards)
            store.release(discards)
            return nil
        }
    }

    /// Takes over what a read saw of the generation.
    private func adopt(_ found: GenerationBinding, _ discards: inout Discards) {
        let isOther = state.withLock { state in
            let known = state.binding
            guard found.database >= state.database else { return false }
            // An older look must not undo what a commit of our own has moved on.
            guard known.database != found.database || known.id <= found.id else { return false }
            state.binding = found
            guard known.id != found.id, known.id != 0 else { return false }
            state.forgetEverything()
            return true
        }
        if isOther { front?.clear(&discards) }
    }
}
