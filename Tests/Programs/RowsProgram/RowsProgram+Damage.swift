import Foundation
import LarderStore
import LarderTestSupport

/// A damaged store that is opened, and killed meanwhile.
extension RowsProgram {
    /// Opens a store, which may have to be salvaged first, puts an entry, and prints each step.
    static func damage(_ arguments: [String]) throws {
        guard arguments.count == 1 else { exit(2) }
        print("begin")
        fflush(nil)
        let store = try Store.open(arguments[0])
        let rows = try store.open(.rows)
        try rows.run(.put([EntryWrite(key: .integer(-1), payload: Data("x".utf8), writtenAt: 0)], if: .always))
        print("acknowledged")
        fflush(nil)
        try store.close()
        print("closed")
    }
}
