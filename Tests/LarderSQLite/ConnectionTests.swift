import LarderSQLite
import Testing

struct ConnectionTests {
    @Test func `text with a NUL inside comes back whole`() throws {
        var connection = try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        let sql = SQL("SELECT ?1")
        let text = try connection.with(sql) { s throws(SQLiteError) in
            try s.binding(text: "a\0b", at: 1) { s throws(SQLiteError) in
                _ = try s.step()
                return s.text(0)
            }
        }
        #expect(text == "a\0b")
    }
}
