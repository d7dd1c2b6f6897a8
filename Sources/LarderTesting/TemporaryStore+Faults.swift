internal import Foundation
public import Larder
internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// A connection that is open until it is released.
private final class HeldConnection: Sendable {
    private let connection: Mutex<Connection?>

    init(_ connection: consuming sending Connection) { self.connection = Mutex(connection) }

    func release() { connection.withLock { $0 = nil } }
}

/// A fault of a ``TemporaryStore``, which lasts until it is ended or this object is released.
public final class StoreFault: Sendable {
    private struct State { var undo: (@Sendable () throws -> Void)? }

    private let state: Mutex<State>

    init(undo: @escaping @Sendable () throws -> Void) { state = Mutex(State(undo: undo)) }

    /// Ends the fault; a second call does nothing, unless the first one has failed.
    public func end() throws {
        let current = state.withLock { $0.undo.take() }
        do { try current?() } catch {
            state.withLock { $0.undo = current }
            throw error
        }
    }

    deinit {
        do { try state.withLock({ $0.undo })?() } catch { print("could not end a fault: \(error)") }
    }
}

extension TemporaryStore {
    /// Lets writes of a manager fail with ``Larder/CacheError/Code/storageFull``.
    ///
    /// Reads and removals go on. If the manager opens its file again, as after a suspension, the fault ends.
    /// As on a real disk that is full, a cache that evicts does so before a write fails.
    ///
    /// - Parameter manager: The manager; others on the store can write.
    /// - Returns: The fault.
    public func fillDisk(of manager: CacheManager) throws -> StoreFault {
        // Each write first asks for more pages than the database may have.
        try run(
            on: manager,
            """
            CREATE TEMP TRIGGER full_insert BEFORE INSERT ON main.entry BEGIN \(Self.hugeRow) END;
            CREATE TEMP TRIGGER full_update BEFORE UPDATE ON main.entry BEGIN \(Self.hugeRow) END;
            PRAGMA max_page_count = 1
            """)
        return StoreFault { [weak manager] in
            guard let manager, !manager.store.isClosed else { return }
            try Self.run(
                on: manager,
                """
                DROP TRIGGER IF EXISTS full_insert; DROP TRIGGER IF EXISTS full_update;
                PRAGMA max_page_count = 4294967294
                """)
        }
    }

    private static let hugeRow =
        """
        INSERT INTO entry (cache, key, revision, written_at, checksum, payload)
            VALUES (-1, 0, 0, 0, 0, zeroblob(64000000));
        """

    /// Runs SQL over the connection of a manager that writes.
    private static func run(on manager: CacheManager, _ sql: String) throws {
        do {
            try manager.store.transaction { state in
                try state.connection.execute(sql)
                // A transaction that changes no row is undone.
                try state.connection.execute("UPDATE store SET id = id")
            }
        } catch {
            throw failure(error)
        }
    }

    private func run(on manager: CacheManager, _ sql: String) throws { try Self.run(on: manager, sql) }

    /// Keeps the lock of writers, so that other writes fail with ``Larder/CacheError/Code/busy`` after the busy timeout.
    ///
    /// - Returns: The fault.
    public func lockWriters() throws -> StoreFault {
        var connection = try connect()
        try connection.beginWriting()
        let lock = HeldConnection(connection)
        return StoreFault { lock.release() }
    }

    /// Moves the file away and puts a folder in its place, so that reads and writes fail with
    /// ``Larder/CacheError/Code/storageUnavailable``.
    ///
    /// - Returns: The fault.
    public func takeAway() throws -> StoreFault {
        let (url, away) = (url, folder("away"))
        try whileSuspended {
            try Self.move(url, to: away)
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        }
        return StoreFault {
            try self.whileSuspended {
                try FileManager.default.removeItem(at: url)
                try Self.move(away, to: url)
            }
        }
    }

    /// Runs `body` while no manager has the file open.
    private func whileSuspended(_ body: () throws -> Void) throws {
        let open = openManagers
        defer { for manager in open { manager.resume() } }
        for manager in open { try manager.suspend() }
        try body()
    }

    /// Moves a database with its log.
    private static func move(_ url: URL, to target: URL) throws {
        for part in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: url.path + part) {
            try FileManager.default.moveItem(atPath: url.path + part, toPath: target.path + part)
        }
    }

    /// Damages the entry of a key on the disk, so that its value is missing and an event reports it.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - cache: A cache of the store.
    public func damage<Key, Value>(_ key: Key, in cache: Cache<Key, Value>) throws {
        let stored = try KeyCodec<Key>().stored(key, cache: cache.name)
        var connection = try connect()
        // With another revision no copy in memory hides the damage.
        try connection.run(
            SQL(
                """
                UPDATE entry SET checksum = ~checksum, revision = ~revision
                WHERE cache = (SELECT id FROM cache WHERE name = ?1 AND state = 0) AND key = ?2
                """)
        ) { row throws(SQLiteError) in
            try row.bind(cache.name, at: 1)
            switch stored {
            case .integer(let number): try row.bind(number, at: 2)
            case .text(let text): try row.bind(text, at: 2)
            case .blob(let bytes): try row.bind(Array(bytes), at: 2)
            }
        }
        if connection.changes == 0 {
            throw CacheError(
                .storageUnavailable, "The cache \"\(cache.name)\" has no key \"\(key)\" that could be damaged.")
        }
    }

    /// Makes the store one of a later release, which this one refuses to open.
    ///
    /// Close its managers before.
    public func makeNewer() throws {
        var connection = try connect()
        try connection.setUserVersion(try connection.userVersion() + 1)
    }

    private func connect() throws(CacheError) -> Connection {
        let path = folder.real("store.sqlite").path
        guard FileManager.default.fileExists(atPath: path) else {
            throw CacheError(.storageUnavailable, "The store is not there yet. Open a manager first.")
        }
        do throws(SQLiteError) {
            return try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 10_000))
        } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: any Error) -> CacheError {
        CacheError(.storageUnavailable, "The fault could not be set or ended. \(error)", underlying: error)
    }
}
