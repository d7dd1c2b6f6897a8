import Foundation
import LarderSQLite
import LarderTestSupport

/// Another program that works on the file, in no way known to the store.
struct Intruder: ~Copyable {
    private var connection: Connection

    init(_ url: URL) throws {
        connection = try Connection.open(.file(url.real.path), .init(role: .writer, busyMilliseconds: 120_000))
    }

    /// Runs SQL as it is: a row that it changes does not fit its checksum any more.
    mutating func execute(_ sql: String) throws { try connection.execute(sql) }
}
