import Larder
import Testing

struct CacheErrorTests {
    @Test func `a description has the code, the message, SQLite's code and the cause`() {
        struct Cause: Error, CustomStringConvertible { let description = "the cause" }
        let error = CacheError(.storageFull, "no room", underlying: Cause(), sqliteCode: 13)
        #expect("\(error)" == "storageFull: no room [SQLite 13] (the cause)")
    }
}
