internal import Foundation
internal import Larder
internal import LarderStore

/// The verbs that say what is wrong.
let healthVerbs = [
    Verb(name: "verify", words: "STORE", summary: "reads everything, and says what is damaged") { arguments in
        let store = try OpenedStore(arguments[0] ?? "", arguments)
        let isWatched = isatty(STDERR_FILENO) == 1
        let report = try store.store.verify { count in
            if isWatched { Output.note("\r\(Text.number(count)) entries") }
        }
        if isWatched { Output.note("\r") }
        let problems = arguments.has("--redact") ? [] : report.problems
        if arguments.has("--json") {
            try Output.json([
                "format": "larder.verify/1", "entries": report.entryCount, "damaged": report.damagedCount,
                "isHealthy": report.problems.isEmpty, "problems": problems,
            ])
        } else {
            for problem in problems { try Output.line("✗ " + Text.escaped(problem)) }
            let damaged = report.damagedCount == 1 ? "1 is damaged" : "\(Text.number(report.damagedCount)) are damaged"
            let text = report.problems.isEmpty ? "no problem" : damaged
            try Output.line("\(Text.number(report.entryCount)) entries, \(text).")
            if !report.problems.isEmpty {
                try Output.line("A program finds nothing there. It repairs the store by verify(repairing: true).")
            }
        }
        return report.problems.isEmpty ? 0 : 1
    },
    Verb(name: "doctor", words: "STORE", summary: "what is unusual, and what would help") { arguments in
        let store = try OpenedStore(arguments[0] ?? "", arguments)
        let hints = try hints(on: store)
        for hint in hints {
            if arguments.has("--json") {
                try Output.json(["format": "larder.hint/1", "hint": hint])
            } else {
                try Output.line("! " + hint)
            }
        }
        if !arguments.has("--json") {
            try Output.line(hints.isEmpty ? "Nothing unusual." : hints.count == 1 ? "1 hint." : "\(hints.count) hints.")
        }
        return 0
    },
]

/// Returns a sentence for each unusual thing.
private func hints(on store: OpenedStore) throws -> [String] {
    let (look, files) = (try store.look(), store.files)
    var hints: [String] = []
    for (name, generations) in Dictionary(grouping: look.retired, by: \.declaration.name).sorted(by: { $0.key < $1.key }
    )
    where generations.count > 3 {
        hints.append(
            "The cache “\(Text.escaped(name))” was purged \(generations.count) times, and the rows are still being deleted."
                + " Two builds with different versions may be purging each other.")
    }
    if let uncopied = look.uncopiedPages, uncopied > 4096 {
        hints.append(
            "The log holds \(Text.bytes(Int64(uncopied) * 4096)) that are not in the database yet."
                + " A process may be in a long read, or no process that writes is running.")
    }
    for name in [".damaged", ".salvaged"] where OpenedStore.size(store.path + name) > 0 {
        hints.append(
            "A database was set aside: \(Text.escaped(store.path + name)), \(Text.bytes(OpenedStore.size(store.path + name)))."
                + " Delete it if you do not need it.")
    }
    // A running program keeps up to 32 to use them again.
    if files.valueCount > Int(look.fileCount) + 32 {
        hints.append(
            "\(Text.number(files.valueCount - Int(look.fileCount))) files of values belong to no entry."
                + " A maintenance deletes those that are older than an hour.")
    }
    for cache in look.caches {
        let name = Text.escaped(cache.declaration.name)
        if let limit = cache.limits.count, cache.count > limit {
            hints.append(
                "The cache “\(name)” has \(Text.number(cache.count)) entries, and its limit is \(Text.number(limit))."
                    + " The others are pinned or have expired.")
        }
        let activity = cache.activity
        if cache.count > 0, (activity[0] ?? 0) + (activity[1] ?? 0) == 0, (activity[9] ?? 0) > 0 {
            hints.append("The cache “\(name)” was written in ninety days, and no read has found anything in it.")
        }
    }
    if let opener = look.opener, opener.library != CacheManager.libraryVersion {
        hints.append(
            "Larder \(Text.escaped(opener.library)) has opened the store last, and this is \(CacheManager.libraryVersion)."
        )
    }
    return hints
}
