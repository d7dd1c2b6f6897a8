import Foundation
import LarderStore
import LarderTestSupport

/// What another process does with the rows of a store.
@main
struct RowsProgram {
    static func main() async throws {
        let arguments = CommandLine.arguments
        switch arguments.dropFirst().first {
        case "change" where arguments.count == 5:
            try change(seed: UInt64(arguments[2]) ?? 0, done: Int(arguments[3]) ?? 0, arguments[4])
        case "exceed" where arguments.count == 3: try await exceed(arguments[2])
        default: exit(2)
        }
    }

    /// Changes rows without end, and prints the number of each change once it is acknowledged.
    private static func change(seed: UInt64, done: Int, _ path: String) throws {
        var model = RowsModel(seed: seed)
        model.advance(to: done)
        let rows = try Store.open(path).open(.rows)
        while true {
            try rows.run(model.next())
            print(model.count)
            fflush(nil)
        }
    }

    /// Puts a small and a large entry in one batch, of which the large one exceeds the size that a file may have.
    ///
    /// Prints which entries are acknowledged.
    private static func exceed(_ path: String) async throws {
        let store = try Store.open(path)
        let rows = try await store.open(.rows)
        @Sendable func put(_ key: Int64, _ size: Int) async -> Bool {
            let entry = EntryWrite(key: .integer(key), payload: Data(count: size), writtenAt: 0)
            do { return try await !rows.run(.put([entry], if: .always)).rows.isEmpty } catch { return false }
        }
        let begun = Locked(false)
        let body = SideThread {
            try store.transaction { _ in
                begun.change { $0 = true }
                try Waiting.until { store.waitingCount == 2 }
            }
        }
        try await Waiting.until { begun.value }
        async let small = put(1, 100)
        async let large = put(2, 1_000_000)
        print("small", await small, "large", await large)
        try body.value()
        print("after", await put(3, 100))
    }
}
