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
        try rows.run(.put([EntryWrite(key: .integer(-1), payload: Data("x".utf8), writtenAt: 0)]))
        print("acknowledged")
        fflush(nil)
        try store.close()
        print("closed")
    }

    /// Keeps the main file from growing for a time, and prints what the store reports of its log.
    static func uncopied(_ path: String) throws {
        signal(SIGXFSZ, SIG_IGN)
        var options = Store.Options()
        options.report = { event in
            switch event {
            case .logNotCopied: print("not copied")
            case .logCopied: print("copied")
            default: break
            }
        }
        let store = try Store.open(path, options)
        let rows = try store.open(.rows)
        func write(_ keys: Range<Int64>) throws {
            let text = Data(repeating: 120, count: 3000)
            let entries = keys.map { EntryWrite(key: .integer($0), payload: text, writtenAt: 0) }
            try rows.run(.put(entries))
        }
        try write(0..<60)
        try store.maintain()
        // The log has room for more pages than the main file.
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        limitFiles(to: rlim_t(size?.uint64Value ?? 0) + 8192)
        try write(60..<90)
        for _ in 0..<3 { do { try store.maintain() } catch {} }
        print("written")
        limitFiles(to: .max)
        try store.maintain()
        try store.maintain()
        print(try store.verify().problems.isEmpty && rows.totals().count == 90)
    }

    /// Prints what is reported of a store without a watch, and whether its reads see what another one writes.
    static func unwatched(_ path: String) throws {
        var options = Store.Options()
        options.report = { if case .unwatched = $0 { print("unwatched") } }
        let (rows, other) = (try Store.open(path, options).open(.rows), try Store.open(path).open(.rows))
        for number in 0..<20 {
            let text = "\(number)"
            try other.run(.put([EntryWrite(key: .integer(1), payload: Data(text.utf8), writtenAt: 0)]))
            guard try rows.row(.integer(1))?.payload == Data(text.utf8) else { return print("stale") }
        }
        print("read")
    }

    private static func limitFiles(to bytes: rlim_t) {
        var limit = rlimit()
        #if canImport(Glibc)
        let kind = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
        let kind = RLIMIT_FSIZE
        #endif
        getrlimit(kind, &limit)
        limit.rlim_cur = min(bytes, limit.rlim_max)
        setrlimit(kind, &limit)
    }
}
