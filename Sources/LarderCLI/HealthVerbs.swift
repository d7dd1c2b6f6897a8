internal import Foundation
internal import Larder
internal import LarderStore

/// The verbs that say what is wrong.
let healthVerbs = [
    Verb(name: "verify", words: "STORE", summary: "reads everything, and says what is damaged") { arguments in
        let store = try arguments.store()
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
            let count = max(report.problems.count, report.damagedCount)
            let text = count == 0 ? "no problem" : count == 1 ? "1 problem" : "\(Text.number(count)) problems"
            try Output.line("\(Text.number(report.entryCount)) entries, \(text).")
            if count > 0 {
                try Output.line("A program finds nothing there. “larder repair” removes what is damaged.")
            }
        }
        return report.problems.isEmpty ? 0 : 1
    },
    Verb(name: "doctor", words: "STORE", summary: "what is unusual, and what would help") { arguments in
        let store = try arguments.store()
        let hints = try hints(on: store, arguments)
        for hint in hints {
            if arguments.has("--json") {
                try Output.json(["format": "larder.hint/1", "hint": hint.text, "command": hint.command ?? NSNull()])
            } else {
                try Output.line("! " + hint.text)
                if let command = hint.command { try Output.line("  " + command) }
            }
        }
        if !arguments.has("--json") {
            try Output.line(hints.isEmpty ? "Nothing unusual." : hints.count == 1 ? "1 hint." : "\(hints.count) hints.")
        }
        return 0
    },
]

/// Something unusual, and the command that looks at it or helps.
struct Hint {
    let text: String
    var command: String?
}

/// Returns what is unusual on a store.
func hints(on store: OpenedStore, _ arguments: Arguments) throws -> [Hint] {
    let path = arguments.has("--redact") ? "STORE" : Text.shellWord(store.path)
    return try hintsOfFiles(on: store, path) + hintsOfCaches(on: store, path)
}

private func hintsOfFiles(on store: OpenedStore, _ path: String) throws -> [Hint] {
    let (look, files, users) = (try store.look(), store.files, OpenedStore.users(of: store.path))
    var hints: [Hint] = []
    if let uncopied = look.uncopiedPages, uncopied > 4096 {
        hints.append(
            Hint(
                text: "The log holds \(Text.bytes(Int64(uncopied) * 4096)) that are not in the database yet."
                    + (users?.isEmpty == true
                        ? " No process that writes is running."
                        : " A long read may hold it back. Open in: \(users?.joined(separator: ", ") ?? "unknown")."),
                command: users?.isEmpty == true ? "larder maintain \(path)" : nil))
    }
    for name in [".damaged", ".salvaged"] where OpenedStore.size(store.path + name) > 0 {
        hints.append(
            Hint(
                text:
                    "A database was set aside: \(Text.bytes(OpenedStore.size(store.path + name))). Delete it if you do not"
                    + " need it.",
                command: "rm \(path)\(name)"))
    }
    // A running program keeps up to 32 to use them again.
    if files.valueCount > Int(look.fileCount) + 32 {
        hints.append(
            Hint(
                text: "\(Text.number(files.valueCount - Int(look.fileCount))) files of values belong to no entry."
                    + " A maintenance deletes those that are older than an hour.",
                command: "larder maintain \(path)"))
    }
    if let opener = look.opener, opener.openedAt > store.now.addingReportingOverflow(3_600_000).partialValue {
        hints.append(
            Hint(
                text: "A program with a clock that is ahead has opened the store, by that clock"
                    + " \(Text.ago(opener.openedAt, store.now)). Entries that it finds expired are deleted early."))
    }
    if let opener = look.opener, opener.library != CacheManager.libraryVersion {
        hints.append(
            Hint(
                text: "Larder \(Text.escaped(opener.library)) has opened the store last, and this is"
                    + " \(CacheManager.libraryVersion)."))
    }
    return hints
}

private func hintsOfCaches(on store: OpenedStore, _ path: String) throws -> [Hint] {
    var hints: [Hint] = []
    let look = try store.look(counts: false)
    let retired = Dictionary(grouping: look.retired, by: \.declaration.name)
    for (name, generations) in retired.sorted(by: { $0.key < $1.key }) where generations.count > 3 {
        hints.append(
            Hint(
                text:
                    "The cache “\(Text.escaped(name))” was purged \(generations.count) times, and the rows are still being"
                    + " deleted. Two builds with different versions may be purging each other.",
                command: "larder maintain \(path)"))
    }
    for cache in try store.store.caches() {
        let (name, word) = (Text.escaped(cache.declaration.name), Text.shellWord(cache.declaration.name))
        let (limits, activity) = (cache.limits, cache.activity)
        let isLarge = cache.count >= 1_000 || cache.size >= 16 << 20
        if limits.count == nil, limits.size == nil, look.limits.size == nil, isLarge {
            hints.append(
                Hint(
                    text:
                        "No limit on disk bounds the cache “\(name)”, which has \(Text.number(cache.count)) entries of"
                        + " \(Text.bytes(cache.size)). Set one in the program: CacheOptions(disk: DiskLimits(sizeLimit:)).",
                    command: "larder stats \(path) \(word)"))
        }
        if cache.count > limits.count ?? .max || cache.size > limits.size ?? .max {
            hints.append(
                Hint(
                    text: "The limits of the cache “\(name)” do not hold: it has \(Text.number(cache.count)) entries of"
                        + " \(Text.bytes(cache.size)), and its limits are \(limits.text). What is beyond is pinned, or no"
                        + " program that writes has run since.",
                    command: "larder stats \(path) \(word)"))
        }
        if cache.count > 0, (activity[0] ?? 0) + (activity[1] ?? 0) == 0, (activity[9] ?? 0) > 0 {
            hints.append(
                Hint(
                    text: "The cache “\(name)” was written in ninety days, and no read has found anything in it.",
                    command: "larder top \(path) \(word) --by age"))
        }
    }
    return hints
}
