extension Cache {
    /// Changes the value of a key in one step: nobody in this process writes the key between the read and the write.
    ///
    /// The body is called exactly once. It finds nil where there is no usable value, and removes what there is by setting
    /// nil; when it throws, nothing changes. Own age, extended data, tags and pin of the entry stay, and its cost is
    /// reset. Other writes of the key wait meanwhile, other keys go on. The body may read anything; a plain write to
    /// the store from inside it, on its thread, throws ``CacheError/Code/reentrant``.
    ///
    /// Another process may write the key meanwhile: the later write stands. A `transaction(_:)` keeps
    /// other processes out too.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) throws -> R {
        try checkWritable("update a value")
        let store = try manager.writableStore()
        let stored = try core.keyCodec.stored(key, cache: name)
        let hold = WriteHold.key(HeldKey(ledger.identity, stored))
        var discards = Discards()
        var done: FinishedUpdate<Key, Value>?
        store.queue.hold(hold, store)
        let result = Result {
            defer { store.queue.release(hold, store) }
            return try store.inside.enter {
                let old = try core.current(key, stored, terms)
                var value = old.value
                let result = try body(&value)
                done = try core.finishUpdate(key, stored, value, old.row, terms, &discards)
                return result
            }
        }
        // What the update displaced is released here, where nothing is held any more, and limits can be held.
        _ = consume discards
        store.tellUntold()
        if let done {
            ledger.settle(done.request)
            core.reportTooCostly(done.writes)
        }
        return try result.get()
    }
}

/// What an update has written.
struct FinishedUpdate<Key: Codable & Hashable & Sendable, Value: Sendable> {
    let request: WriteRequest
    let writes: [PreparedWrite<Key, Value>]
}

extension SubCache {
    /// What an update starts from; an entry that is over, or does not decode, is none.
    ///
    /// - Parameter throwing: Whether that it does not decode is thrown where it is met for the first time.
    func current(
        _ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>, throwing: Bool = false
    ) throws(CacheError) -> (value: Value?, row: EntryRow?) {
        let accessedAt = accessed(key, now: terms.now())
        guard let (row, facts) = try ledger.row(stored, terms.age, accessedAt: accessedAt),
            !facts.isExpired(terms.rule, now: terms.now())
        else {
            return (nil, nil)
        }
        // A file that is out of reach is not a damaged one: the entry is there, and nobody may take it for absent.
        guard let row = try ledger.filled(stored, row) else { return (nil, nil) }
        do throws(CacheError) {
            return (try decode(row, stored, terms), row)
        } catch {
            let finding = failed(stored, revision: facts.revision, isInFile: row.facts.file != nil, error, terms)
            if throwing, case .failure(let error) = finding { throw error }
            return (nil, nil)
        }
    }

    /// Writes what the body of an update made; the key is held, so what follows a write is left to the caller.
    func finishUpdate(
        _ key: Key, _ stored: StoredKey, _ value: Value?, _ row: EntryRow?, _ terms: CacheTerms<Value>,
        _ discards: inout Discards
    ) throws(CacheError) -> FinishedUpdate<Key, Value>? {
        guard let value else {
            guard row != nil else {
                if try !ledger.isCurrent() { throw ledger.supersededError }
                // No row changes, and still what is being made for the key is no longer wanted.
                discards.add(loads.noteWrite(key))
                return nil
            }
            let request = removeRequest([(key, stored)], scope: .unheld)
            try ledger.runKeeping(request)
            return FinishedUpdate(request: request, writes: [])
        }
        var write = try prepare(value, forKey: key, extended: row?.extended, terms)
        write.content.row.age = row?.facts.age
        write.content.row.isPinned = row?.facts.isPinned ?? false
        write.content.row.keepsTags = row != nil
        do throws(CacheError) {
            let request = setRequest(write, scope: .unheld)
            try ledger.runKeeping(request)
            return FinishedUpdate(request: request, writes: [write])
        } catch {
            write.content.spilled?.discard()
            throw error
        }
    }
}
