internal import LarderSQLite

/// An open store: one database with its caches.
package final class Store: Sendable {
    package struct Options: Sendable {
        package enum Durability: Sendable {
            /// A completed write survives the death of the process.
            case processCrash
            /// A completed write survives a loss of power.
            case powerLoss
        }

        package var durability = Durability.processCrash
        /// The milliseconds that a call waits for other processes and for long bodies.
        package var busyTimeout: Int64 = 5000
        package var time = StoreTime.system

        package init() {}
    }

    /// The file of the database; nil in memory.
    package let path: String?
    package let time: StoreTime
    /// Notices the commits of other stores.
    package let watch: CommitWatch
    let writer: Writer
    /// The connections that read; nil in memory.
    let readers: Readers?

    private init(path: String?, _ state: sending WriterState, _ options: Options) {
        self.path = path
        time = options.time
        (watch, readers) = (state.watch, state.readers)
        writer = Writer(
            state, busyTimeout: options.busyTimeout, syncsCommits: path != nil && options.durability == .powerLoss)
    }

    /// Opens the store at a path, and creates it and its folder if they are missing.
    package static func open(_ path: String, _ options: Options = Options()) throws(StoreError) -> Store {
        Store(path: path, try StoreFile(path: path, options: options).open(), options)
    }

    /// Opens a store in memory, for this object alone.
    package static func inMemory(_ options: Options = Options()) throws(StoreError) -> Store {
        let state = try StoreError.translating {
            var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
            try Schema.create(&connection)
            return try WriterState(connection, guardian: nil, nil)
        }
        return Store(path: nil, state, options)
    }

    deinit { readers?.close() }

    // MARK: Caches

    /// Opens a cache.
    ///
    /// If the store has it under another version or codec, its rows are retired.
    package func open(_ declaration: CacheDeclaration) throws(StoreError) -> CacheRows {
        try writer.run(.block(opening(declaration)))
        return CacheRows(declaration, store: self)
    }

    /// Opens a cache for a task.
    package func open(_ declaration: CacheDeclaration) async throws -> CacheRows {
        try await writer.run(.block(opening(declaration)))
        return CacheRows(declaration, store: self)
    }

    private func opening(_ declaration: CacheDeclaration) -> @Sendable (WriterState) throws -> Void {
        let now = time.now()
        return { state in
            // If the cache is open with the same rule, nothing is written.
            if state.generation(of: declaration)?.cache != declaration {
                try state.open(declaration, at: now)
            }
        }
    }

    // MARK: The whole store

    /// Runs `body` in one transaction, on this thread: all its changes are committed, or none if it throws.
    ///
    /// Other writers wait. From inside the body everything else that asks for the writer throws `.reentrant`.
    package func transaction<R>(_ body: (WriterState) throws -> R) throws -> R { try writer.exclusive(body) }

    /// Runs `body` in one transaction for a task.
    package func transaction<R: Sendable>(_ body: @escaping @Sendable (WriterState) throws -> R) async throws -> R {
        try await writer.exclusive(body)
    }

    /// Runs a chore of the store in a transaction that it shares with other requests.
    package func perform(_ chore: @escaping @Sendable (WriterState) throws -> Void) throws(StoreError) {
        try writer.run(.block(chore))
    }

    /// Runs a chore of the store from a task.
    package func perform(_ chore: @escaping @Sendable (WriterState) throws -> Void) async throws {
        try await writer.run(.block(chore))
    }

    /// The number of requests that wait for the writer.
    package var waitingCount: Int { writer.waitingCount }

    /// A Boolean value that indicates whether the store refuses new requests.
    package var isClosed: Bool { writer.isClosed }

    /// Refuses new requests, ends those that wait, and closes the file.
    ///
    /// Closing twice is harmless.
    package func close() throws(StoreError) { try writer.close() }
}
