import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport

/// A store in a folder of its own.
struct StorePlace {
    let folder: TemporaryFolder
    var path: String { folder("store.sqlite").path }
    /// The path without links, as messages name it and SQLite opens it.
    var realPath: String { folder.real("store.sqlite").path }

    init(_ suite: String = #fileID) throws { folder = try TemporaryFolder(suite) }

    func open(
        busyTimeout: Int64 = 60_000, _ clock: StoreClock = StoreClock(),
        _ change: (inout Store.Options) -> Void = { _ in }
    ) throws -> Store {
        var options = Store.Options()
        options.busyTimeout = busyTimeout
        options.time = clock.time
        change(&options)
        return try Store.open(path, options)
    }

    /// A connection of the kind that another process has.
    func otherConnection() throws -> Connection {
        try Connection.open(.file(realPath), .init(role: .writer, busyMilliseconds: 10_000))
    }
}

extension StoreEvent {
    /// A Boolean value that indicates whether rows were removed as they should be.
    var isRemoval: Bool { if case .removed = self { true } else { false } }
}

extension CacheDeclaration {
    static let a = CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .unlimited)
}

/// Runs `body` over every kind of store.
func withStores(_ body: (Store) throws -> Void) throws {
    let place = try StorePlace()
    var options = Store.Options()
    options.time = StoreClock().time
    for store in [try Store.inMemory(options), try place.open()] {
        try body(store)
        try store.close()
    }
}

extension EntryWrite {
    init(_ key: Int64, _ text: String, at moment: Int64 = 1000, meta: RowMeta = RowMeta(), keepsPin: Bool = false) {
        self.init(
            key: .integer(key), payload: Data(text.utf8), writtenAt: moment, meta: meta, keepsPin: keepsPin)
    }
}

extension CacheRows {
    func put(_ key: Int64, _ text: String) throws { try run(.put([EntryWrite(key, text)])) }
    func put(_ key: Int64, _ text: String) async throws { try await run(.put([EntryWrite(key, text)])) }
    func text(_ key: Int64) throws -> String? {
        try row(.integer(key)).map { String(decoding: $0.payload, as: UTF8.self) }
    }
}

extension Connection {
    /// Returns how SQLite runs a statement.
    mutating func plan(_ sql: String) throws -> String {
        try with(SQL("EXPLAIN QUERY PLAN " + sql)) { row throws(SQLiteError) in
            var lines: [String] = []
            while try row.step() { lines.append(row.text(3)) }
            return lines.joined(separator: "; ")
        }
    }
}

/// A condition that a closure answers.
struct When: ChangeCondition {
    private let body: @Sendable () -> Bool

    init(_ body: @escaping @Sendable () -> Bool) { self.body = body }

    func holds() -> Bool { body() }
}
