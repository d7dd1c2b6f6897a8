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
        case "share" where arguments.count == 6:
            try share(arguments[2], arguments[3], index: Int(arguments[4]) ?? 0, rounds: Int(arguments[5]) ?? 0)
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

    /// Counts up in an entry of its own, and reads those of the other programs and an entry that is cleared again and again.
    ///
    /// Number `i` of the shared ones is what program `i` has put for certain, and number 9 the clears that have returned.
    private static func share(_ path: String, _ counts: String, index: Int, rounds: Int) throws {
        let shared = try SharedNumbers(counts)
        let store = try Store.open(path)
        let rows = try store.open(.rows)
        let cleared = try store.open(
            CacheDeclaration(name: "cleared", version: "1", codec: "data", ageRule: .unlimited))
        func number(_ rows: CacheRows, _ key: Int) throws -> Int? {
            try rows.row(.integer(Int64(key))).flatMap { Int(String(decoding: $0.payload, as: UTF8.self)) }
        }
        func put(_ rows: CacheRows, _ key: Int, _ number: Int) throws {
            let entry = EntryWrite(key: .integer(Int64(key)), payload: Data("\(number)".utf8), writtenAt: 0)
            try rows.run(.put([entry], if: .always))
        }
        try shared.meet(4)
        for round in 1...max(1, rounds) {
            try put(rows, index, round)
            shared[index] = round
            if index == 0 {
                try put(cleared, 1, round)
                try cleared.run(.clear)
                shared[9] = round
            }
            for other in 0..<4 {
                let least = shared[other]
                let found = try number(rows, other) ?? 0
                if found < least { print("read", found, "of", other, "after", least) }
                let (clears, left) = (shared[9], try number(cleared, 1))
                if let left, left <= clears { print("read", left, "after clear", clears) }
            }
        }
        print("done")
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
