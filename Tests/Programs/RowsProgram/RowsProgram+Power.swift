import Foundation
import LarderStore
import LarderTestSupport

extension RowsProgram {
    /// Makes changes of the model under a tracer, and prints the number of each change once it is acknowledged.
    ///
    /// The clock stands still and no timer fires, so all calls are those of this thread.
    ///
    /// - Parameter arguments: The durability, the seed, the number of changes, the number of changes after which all
    ///   upkeep is done, the number of bytes above which a value is a file, and the path.
    static func power(_ arguments: [String]) throws {
        guard arguments.count == 6, let seed = UInt64(arguments[1]), let changes = Int(arguments[2]),
            let interval = Int(arguments[3]), interval > 0, let inlineLimit = Int(arguments[4])
        else { exit(2) }
        var options = Store.Options()
        options.durability = arguments[0] == "powerLoss" ? .powerLoss : .processCrash
        let cancel: @Sendable () -> Void = {}
        options.time = StoreTime(now: { 1_700_000_000_000 }, wake: { _, _ in cancel })
        let store = try Store.open(arguments[5], options)
        let rows = try store.open(.rows, inlineLimit: inlineLimit)
        var model = RowsModel(seed: seed)
        while model.count < changes {
            try rows.run(model.next())
            // Copies the log.
            if model.count % interval == 0 { try store.maintain() }
            print(model.count)
            fflush(nil)
        }
        try store.close()
    }

    /// Opens a store that may not be there, and prints the key of an entry once it is acknowledged.
    ///
    /// - Parameter arguments: The durability, the number of threads that do so, the path, and a name for the keys. With no
    ///   thread, four processes do so.
    static func openFirst(_ arguments: [String]) throws {
        if arguments[1] == "0" {
            let processes = try (1...4).map { number in
                let process = Process()
                process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
                process.arguments = ["first", arguments[0], "1", arguments[2], "\(number)"]
                try process.run()
                return process
            }
            for process in processes { process.waitUntilExit() }
            return
        }
        var options = Store.Options()
        options.durability = arguments[0] == "powerLoss" ? .powerLoss : .processCrash
        options.busyTimeout = 60_000
        options.time = StoreTime(now: { 1_700_000_000_000 }, wake: { _, _ in {} })
        let threads = (0..<(Int(arguments[1]) ?? 1)).map { [options] thread in
            SideThread {
                let rows = try Store.open(arguments[2], options).open(.rows)
                let key = "\(arguments[3])-\(thread)"
                let entry = EntryWrite(key: .text(key), payload: Data(key.utf8), writtenAt: 0)
                try rows.run(.put([entry]))
                print(key)
                fflush(nil)
            }
        }
        for thread in threads { try thread.value() }
    }
}
