/// What passes get of the rows they come to.
///
/// The way of a plain pass is compiled in the user's module: what is generic and is not specialised asks the runtime for
/// its types at every step, which took longer than row and value together.
extension SubCache {
    /// The key and the value in a row: nil where it is over, or cannot be read.
    @inlinable
    func pair(_ item: ListedRow, _ terms: CacheTerms<Value>) -> (key: Key, value: Value)? {
        guard let (key, facts) = passed(item.key, item.row.facts, terms, now: terms.now(), isPlain: true),
            let row = filled(item)
        else { return nil }
        do throws(CacheError) {
            return (key, try decode(row, item.key, terms))
        } catch {
            noteUnreadable(item.key, facts.revision, error, terms)
            return nil
        }
    }

    /// Everything in a row: nil where it is over, or cannot be read.
    func passed(_ item: ListedRow, _ terms: CacheTerms<Value>, now: Int64) -> CacheEntry<Key, Value>? {
        guard var (key, facts) = passed(item.key, item.row.facts, terms, now: now), let row = filled(item) else {
            return nil
        }
        if row.facts.revision != facts.revision {
            // It was written since the page was read.
            guard let again = passed(item.key, row.facts, terms, now: now) else { return nil }
            (key, facts) = again
        }
        do throws(CacheError) {
            let value = try decode(row, item.key, terms)
            return CacheEntry(
                key: key, value: value, extendedData: row.extended,
                metadata: EntryMetadata(facts, rule: terms.rule, accessedAt: facts.accessedAt), isExpired: false)
        } catch {
            noteUnreadable(item.key, facts.revision, error, terms)
            return nil
        }
    }

    /// A key of a listing in which every entry counts, up to a moment.
    @inlinable
    func passed(_ stored: StoredKey, _ terms: CacheTerms<Value>, servedUntil: Int64) -> Key? {
        if servedUntil < .max, !terms.age.isBefore(servedUntil) { return lateKey(stored, terms) }
        if Key.self == Int.self, case .integer(let number) = stored { return Int(number) as? Key }
        do throws(CacheError) {
            return try keyCodec.key(stored, cache: name)
        } catch {
            noteUnreadable(stored, error, terms)
            return nil
        }
    }

    /// The key of a row that counts, with what is known of it.
    ///
    /// - Parameter isPlain: Whether nobody asks when the entry was used, unless its age runs from there.
    @inlinable
    func passed(
        _ stored: StoredKey, _ facts: EntryFacts, _ terms: CacheTerms<Value>, now: Int64, isPlain: Bool = false
    ) -> (key: Key, facts: EntryFacts)? {
        do throws(CacheError) {
            let key = try keyCodec.key(stored, cache: name)
            let accessedAt = isPlain && !facts.isSliding(else: terms.rule) ? nil : accessed(key, now: now)
            guard let seen = ledger.served(stored, facts, terms.rule, now: now, accessedAt: accessedAt) else {
                return nil
            }
            return (key, seen)
        } catch {
            noteUnreadable(stored, facts.revision, error, terms)
            return nil
        }
    }

    /// A key whose entry may be over since the page was read.
    @usableFromInline
    func lateKey(_ stored: StoredKey, _ terms: CacheTerms<Value>) -> Key? {
        do throws(CacheError) {
            guard let facts = try ledger.facts(stored, terms.age, accessedAt: nil) else { return nil }
            return passed(stored, facts, terms, now: terms.now(), isPlain: true)?.key
        } catch {
            noteOutOfReach(stored, error)
            return nil
        }
    }

    /// A row with its payload in hand; nil if it has gone, or is out of reach for now.
    @inlinable
    func filled(_ item: ListedRow) -> EntryRow? {
        item.row.isInHand ? item.row : filledFromFile(item)
    }

    @usableFromInline
    func filledFromFile(_ item: ListedRow) -> EntryRow? {
        do throws(CacheError) {
            return try ledger.filled(item.key, item.row)
        } catch {
            noteOutOfReach(item.key, error)
            return nil
        }
    }

    /// Remembers that a row cannot be read.
    @usableFromInline
    func noteUnreadable(_ stored: StoredKey, _ revision: Int64, _ error: CacheError, _ terms: CacheTerms<Value>) {
        _ = failed(stored, revision: revision, error, terms)
    }

    /// Remembers that the key of a row cannot be read, as the row is now.
    @usableFromInline
    func noteUnreadable(_ stored: StoredKey, _ unreadable: CacheError, _ terms: CacheTerms<Value>) {
        do throws(CacheError) {
            guard let facts = try ledger.facts(stored, terms.age, accessedAt: nil) else { return }
            noteUnreadable(stored, facts.revision, unreadable, terms)
        } catch {
            noteOutOfReach(stored, error)
        }
    }

    /// Tells that a row could not be had, with which nothing is wrong.
    private func noteOutOfReach(_ stored: StoredKey, _ error: CacheError) {
        ledger.count { $0.failures += 1 }
        report(.readFailed, key: stored, error.message, error: error)
    }
}
