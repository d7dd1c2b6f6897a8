public import LarderStore

/// The calls of the store, whose failures get the names of the cache and the key.
extension CacheRows {
    /// Runs a call of the store, and gives its failure the names of the cache and the key.
    func throwing<R>(
        _ action: String, _ key: StoredKey? = nil, _ body: () throws(StoreError) -> R
    ) throws(CacheError) -> R {
        if let trace = store.trace { return try told(trace, action, key, { _ in .done }, body) }
        do throws(StoreError) { return try body() } catch { throw failure(error, action, key) }
    }

    /// Runs a read of the store, and gives its failure the names of the cache and the key.
    private func reading<Row>(
        _ key: StoredKey, _ body: () throws(StoreError) -> Row?
    ) throws(CacheError) -> Row? {
        let action = "read the value"
        if let trace = store.trace { return try told(trace, action, key, { $0 == nil ? .missing : .found }, body) }
        do throws(StoreError) { return try body() } catch { throw failure(error, action, key) }
    }

    private func told<R>(
        _ trace: StoreTrace, _ action: String, _ key: StoredKey?, _ outcome: (R) -> StoreTrace.Call.Outcome,
        _ body: () throws(StoreError) -> R
    ) throws(CacheError) -> R {
        try trace.following(action, declaration.name, key, .disk, outcome: outcome) { () throws(CacheError) in
            do throws(StoreError) { return try body() } catch { throw failure(error, action, key) }
        }
    }

    private func failure(_ error: StoreError, _ action: String, _ key: StoredKey?) -> CacheError {
        if error.code == .superseded { noteSuperseded() }
        return CacheError(error, action, cache: declaration.name, key: key)
    }

    /// Runs a call of the store for a task, and gives its failure the names of the cache and the key.
    func throwing<R>(_ action: String, _ key: StoredKey? = nil, _ body: () async throws -> R) async throws -> R {
        guard let trace = store.trace else {
            do { return try await body() } catch let error as StoreError { throw failure(error, action, key) }
        }
        return try await trace.following(action, declaration.name, key, .disk) {
            do { return try await body() } catch let error as StoreError { throw failure(error, action, key) }
        }
    }

    /// Returns the row of a key if it is a plain one; else puts it into `other` if there is one.
    @usableFromInline
    func plainRow(
        _ key: StoredKey, readAt moment: Int64, orElse other: inout StoredRow?
    ) throws(CacheError) -> PlainRow? {
        if store.trace == nil {
            do throws(StoreError) { return try plainRow(key, at: moment, orElse: &other) } catch {
                throw failure(error, "read the value", key)
            }
        }
        let found = try reading(key) { () throws(StoreError) -> (plain: PlainRow?, other: StoredRow?)? in
            var other: StoredRow?
            let plain = try plainRow(key, at: moment, orElse: &other)
            return plain == nil && other == nil ? nil : (plain, other)
        }
        other = found?.other
        return found?.plain
    }

    /// Returns the header of a key's row; nil if there is none.
    @usableFromInline
    func currentHeader(_ key: StoredKey) throws(CacheError) -> EntryHeader? {
        try reading(key) { () throws(StoreError) in try header(key) }
    }

    /// Makes a change, and returns when it is committed.
    @usableFromInline
    func run(_ change: Change, _ action: String) throws(CacheError) -> Outcome {
        try throwing(action, change.onlyKey) { () throws(StoreError) in try run(change) }
    }

    /// Makes a change for a task.
    func run(_ change: Change, _ action: String) async throws -> Outcome {
        try await throwing(action, change.onlyKey) { try await run(change) }
    }
}

extension CacheError {
    /// Creates the error of a call from that of the store.
    ///
    /// - Parameter action: The action of the call ("read the value").
    init(_ error: StoreError, _ action: String, cache: String? = nil, key: StoredKey? = nil) {
        let subject = key.map { " of key \"\($0.name)\"" } ?? ""
        let place = cache.map { "The cache \"\($0)\"" } ?? "The store"
        self.init(
            Code(error.code), "\(place) could not \(action)\(subject). \(error.message)", underlying: error,
            sqliteCode: error.sqliteCode)
    }
}

extension CacheError.Code {
    fileprivate init(_ code: StoreError.Code) {
        self =
            switch code {
            case .storageUnavailable: .storageUnavailable
            case .storageFull: .storageFull
            case .busy: .busy
            case .corrupt: .corrupt
            case .foreignFile: .foreignFile
            case .newerSchema: .newerSchema
            case .superseded: .superseded
            case .reentrant: .reentrant
            case .closed: .closed
            case .suspended: .suspended
            case .tooLarge: .tooLarge
            case .readOnly: .readOnly
            case .otherKeys: .typeMismatch
            }
    }
}
