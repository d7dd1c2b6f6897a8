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
        case "files" where arguments.count == 6:
            try change(
                seed: UInt64(arguments[2]) ?? 0, done: Int(arguments[3]) ?? 0, arguments[4],
                times: Int(arguments[5]) ?? 1, maintainingAfter: 7)
        case "exceed" where arguments.count == 3: try await exceed(arguments[2])
        case "migrate" where arguments.count == 4: try open(arguments[2], dyingAfter: Int(arguments[3]) ?? 0)
        case "first" where arguments.count == 6: try openFirst(Array(arguments.dropFirst(2)))
        case "uncopied" where arguments.count == 3: try uncopied(arguments[2])
        case "unwatched" where arguments.count == 3: try unwatched(arguments[2])
        case "sync" where arguments.count == 3: try sync(arguments[2])
        case "share" where arguments.count == 6:
            try share(arguments[2], arguments[3], index: Int(arguments[4]) ?? 0, rounds: Int(arguments[5]) ?? 0)
        case "damage": try damage(Array(arguments.dropFirst(2)))
        case "power": try power(Array(arguments.dropFirst(2)))
        case "disk": try disk(Array(arguments.dropFirst(2)))
        default: exit(2)
        }
    }

    /// Opens a store, and is ended by the system after a time; 0 for never.
    private static func open(_ path: String, dyingAfter microseconds: Int) throws {
        var timer = itimerval()
        timer.it_value.tv_usec = numericCast(microseconds)
        // The first timer counts the time of the clock.
        setitimer(0, &timer, nil)
        try Store.open(path).close()
    }

    /// Changes rows without end, and prints the number of each change once it is acknowledged.
    ///
    /// - Parameters:
    ///   - times: How often each value repeats that of the model. Repeated ones are files for the most part.
    ///   - interval: The number of changes after which all upkeep is done, with a clock an hour ahead; nil for none.
    private static func change(
        seed: UInt64, done: Int, _ path: String, times: Int = 1, maintainingAfter interval: Int? = nil
    ) throws {
        var model = RowsModel(seed: seed)
        model.advance(to: done)
        var options = Store.Options()
        if interval != nil { options.time = .hourAhead }
        let store = try Store.open(path, options)
        let rows = try store.open(.rows, inlineLimit: 5000)
        while true {
            try run(repeating(model.next(), model.entries, times), rows)
            print(model.count)
            fflush(nil)
            if let interval, model.count % interval == 0 { try store.maintain() }
        }
    }

    /// Makes a change, and again if upkeep on another thread has swept its file before its row was written.
    private static func run(_ change: Change, _ rows: CacheRows) throws {
        for attempt in 1... {
            do throws(StoreError) {
                try rows.run(change)
                return
            } catch {
                guard error.code == .storageUnavailable, attempt < 100 else { throw error }
            }
        }
    }

    /// Returns a change of the model with values that repeat those of its entries.
    private static func repeating(_ change: Change, _ texts: [Int64: String], _ times: Int) -> Change {
        guard times > 1, case .put(let entries) = change.work else { return change }
        let larger = entries.map { entry -> EntryWrite in
            guard case .integer(let key) = entry.key, let text = texts[key] else { return entry }
            let payload = Data(String(repeating: text, count: times).utf8)
            return EntryWrite(key: entry.key, payload: payload, writtenAt: 0)
        }
        return .put(larger)
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
            try rows.run(.put([entry]))
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

    /// Puts an entry that is kept in a file, so that it survives a loss of power.
    private static func sync(_ path: String) throws {
        var options = Store.Options()
        options.durability = .powerLoss
        let rows = try Store.open(path, options).open(.rows, inlineLimit: 100)
        try rows.run(
            .put([EntryWrite(key: .integer(1), payload: Data(count: 9000), writtenAt: 0)]))
        print("acknowledged")
    }

    /// Puts a small and a large entry in one batch, of which the large one exceeds the size that a file may have.
    ///
    /// Prints which entries are acknowledged.
    private static func exceed(_ path: String) async throws {
        let store = try Store.open(path)
        let rows = try store.open(.rows, inlineLimit: .max)
        @Sendable func put(_ key: Int64, _ size: Int) async -> Bool {
            let entry = EntryWrite(key: .integer(key), payload: Data(count: size), writtenAt: 0)
            do { return try await !rows.run(.put([entry])).rows.isEmpty } catch { return false }
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

extension StoreTime {
    /// The time of the system with a clock by which each file is an hour old.
    fileprivate static let hourAhead = StoreTime(
        now: { StoreTime.system.now() + 3_700_000 }, wake: StoreTime.system.wake)
}
