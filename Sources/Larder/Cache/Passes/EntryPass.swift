/// What the iterators over the entries of a sub-cache share: pages of rows, and what counts of them.
struct EntryPass<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let cache: Cache<Key, Value>
    private var pass: EntryPages?
    /// The rest of the page, the next one last.
    private var page: [ListedRow] = []

    init(_ cache: Cache<Key, Value>, _ pass: EntryPages = .plain(RowPass())) {
        self.cache = cache
        self.pass = pass
    }

    /// The next entry; nil at the end, and after a failure, which is reported, for ever.
    mutating func next() -> CacheEntry<Key, Value>? {
        do throws(CacheError) {
            while true {
                if let entry = nextOfPage() { return entry }
                guard try loadPage() else { return nil }
            }
        } catch {
            pass = nil
            cache.noteFailedPass(error)
            return nil
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
                    _ = try ahead.loadPage()
                    return ahead
                }
            } catch {
                pass = nil
                throw error
            }
            if page.isEmpty { return nil }
        }
    }

    private mutating func nextOfPage() -> CacheEntry<Key, Value>? {
        while let row = page.popLast() {
            if let entry = cache.core.passed(row, cache.terms, now: cache.terms.now()) { return entry }
        }
        return nil
    }

    /// Reads the next page; false at the end.
    private mutating func loadPage() throws(CacheError) -> Bool {
        guard pass != nil else { return false }
        _ = try cache.manager.store()
        page = try pass?.nextRows(of: cache.ledger).reversed() ?? []
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
