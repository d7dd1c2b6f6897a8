internal import Dispatch
internal import Foundation
internal import LarderStore

/// Prints what changes in the caches of a store, until it is interrupted.
func watch(_ arguments: Arguments) throws -> Int32 {
    let store = try arguments.store()
    if let name = arguments[1] { _ = try store.cache(name) }
    let every = try arguments.milliseconds("--every") ?? 1000
    if every < 1000 { throw Failure.usage("“--every” is one second or more.") }
    var rest = try arguments.number("--limit") ?? .max
    let end = DispatchSemaphore(value: 0)
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler { end.signal() }
    source.activate()
    var (state, isFirst) = (WatchState(store: store, only: arguments[1]), true)
    while rest > 0 {
        let rows = try state.next()
        if arguments.has("--json") {
            for row in rows { try Output.json(row.json) }
        } else {
            var table = Table("TIME", "CACHE", " ENTRIES", " CHANGE", " WRITTEN", " HITS", " MISSES")
            for row in rows { row.add(to: &table) }
            // A terminal is cleared for each table. Elsewhere the head is printed once.
            if Output.isTerminal { try Output.put("\u{1B}[H\u{1B}[2J") }
            for line in table.lines.dropFirst(Output.isTerminal || isFirst ? 0 : 1) { try Output.line(line) }
            isFirst = false
        }
        try Output.finish()
        rest -= 1
        if rest > 0 && end.wait(timeout: .now() + .milliseconds(Int(every))) == .success { return 130 }
    }
    return 0
}

/// What was seen of the caches of a store at the last look.
private struct WatchState {
    let store: OpenedStore
    let only: String?
    private var last: [String: CacheLook] = [:]
    private var moment: Int64?

    init(store: OpenedStore, only: String?) { (self.store, self.only) = (store, only) }

    struct Row {
        let moment: Int64
        let name: String
        let (count, change, written, hits, misses): (Int64, Int64, Int64, Int64, Int64)

        var json: [String: Any] {
            [
                "format": "larder.watch/1", "time": Text.moment(moment), "cache": name, "entries": count,
                "change": change, "written": written, "hits": hits, "misses": misses,
            ]
        }

        func add(to table: inout Table) {
            let time = Date(timeIntervalSince1970: Double(moment) / 1000).formatted(
                Date.ISO8601FormatStyle(timeSeparator: .colon).time(includingFractionalSeconds: false))
            table.add(
                time, Text.escaped(name), Text.number(count), (change > 0 ? "+" : "") + Text.number(change),
                Text.number(written), Text.number(hits), Text.number(misses))
        }
    }

    mutating func next() throws -> [Row] {
        let now = store.store.time.now()
        // Rows may still be written in this millisecond, and count the next time.
        let end = now - 1
        let caches = try store.store.look(activityOf: 90, until: now, counts: true).caches.filter {
            only == nil || ExactName($0.declaration.name) == ExactName(only ?? "")
        }
        if let only, caches.isEmpty { throw Failure(66, "The cache “\(Text.escaped(only))” was removed.") }
        defer {
            last = Dictionary(caches.map { ($0.declaration.name, $0) }) { first, _ in first }
            moment = end
        }
        return try caches.map { cache in
            let (name, old) = (cache.declaration.name, last[cache.declaration.name])
            func gain(_ counters: Int64...) -> Int64 {
                guard let old else { return 0 }
                return max(0, counters.reduce(0) { $0 + (cache.activity[$1] ?? 0) - (old.activity[$1] ?? 0) })
            }
            let written = try moment.map {
                try store.store.rows(of: cache.declaration).count(writtenAfter: $0, to: end)
            }
            return Row(
                moment: now, name: name, count: cache.count, change: cache.count - (old?.count ?? cache.count),
                written: written ?? 0, hits: gain(0, 1), misses: gain(2))
        }
    }
}
