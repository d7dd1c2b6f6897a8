/// What the iterators over the entries of a sub-cache share: pages of rows, and what counts of them.
///
/// Safety: `reverse` works on the array's own buffer inside the call and stores nothing of it.
@usableFromInline
struct EntryPass<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let cache: Cache<Key, Value>
    private var pass: EntryPages?
    /// The rest of the page, the next one last.
    @usableFromInline var page: [ListedRow] = []

    init(_ cache: Cache<Key, Value>, _ pass: EntryPages = .plain(RowPass())) {
        self.cache = cache
        self.pass = pass
    }

    /// The next key and value; nil at the end, and after a failure, which is reported, for ever.
    @inlinable
    mutating func nextPair() -> (key: Key, value: Value)? {
        repeat {
            while let row = page.popLast() {
                if let pair = cache.core.pair(row, cache.terms) { return pair }
            }
        } while turnPage()
        return nil
    }

    /// The next entry; nil at the end, and after a failure, which is reported, for ever.
    mutating func next() -> CacheEntry<Key, Value>? {
        repeat {
            if let entry = nextOfPage() { return entry }
        } while turnPage()
        return nil
    }

    /// Reads the next page; false at the end, and after a failure.
    @usableFromInline
    mutating func turnPage() -> Bool {
        do throws(CacheError) {
            return try loadPage()
        } catch {
            pass = nil
            cache.noteFailedPass(error)
            return false
        }
    }

    /// The next entry, without holding up the caller's executor; throws what ends it.
    mutating func next() async throws -> CacheEntry<Key, Value>? {
        while true {
            try Task.checkCancellation()
            if let entry = nextOfPage() { return entry }
            let copy = self
            do throws(CacheError) {
                self = try await offload { () throws(CacheError) in
                    var ahead = copy
                    if try ahead.loadPage() { ahead.readFiles() }
                    return ahead
                }
            } catch {
                pass = nil
                throw error
            }
            // Where the files of a whole page were gone, others may follow.
            if page.isEmpty, pass == nil { return nil }
        }
    }

    private mutating func nextOfPage() -> CacheEntry<Key, Value>? {
        while let row = page.popLast() {
            if let entry = cache.core.passed(row, cache.terms, now: cache.terms.now()) { return entry }
        }
        return nil
    }

    /// Reads the files of the page, all of which fit into one, ahead of a caller who must not wait for them.
    private mutating func readFiles() {
        page = page.compactMap { item in
            let (facts, rule) = (item.row.facts, cache.terms.rule)
            if item.row.isInHand { return item }
            // Of what is over no file is wanted.
            if !facts.isSliding(else: rule), facts.isExpired(rule, now: cache.terms.now()) { return item }
            return cache.core.filled(item).map { ListedRow(key: item.key, row: $0) }
        }
    }

    /// Reads the next page; false at the end.
    private mutating func loadPage() throws(CacheError) -> Bool {
        guard pass != nil else { return false }
        _ = try cache.manager.store()
        page = try pass?.nextRows(of: cache.ledger) ?? []
        // Moved, where the array's own way would copy each row.
        page.withUnsafeMutableBufferPointer { $0.reverse() }
        if page.isEmpty { pass = nil }
        return !page.isEmpty
    }
}

/// Where the rows of a pass come from.
enum EntryPages: Sendable {
    case plain(RowPass)
    case ordered(OrderedPass)

    fileprivate mutating func nextRows(of ledger: RowLedger) throws(CacheError) -> [ListedRow] {
        switch self {
        case .plain(var pass):
            defer { self = .plain(pass) }
            return try pass.nextRows(of: ledger)
        case .ordered(var pass):
            defer { self = .ordered(pass) }
            return try pass.nextRows(of: ledger)
        }
    }
}
