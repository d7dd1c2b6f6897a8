internal import Foundation
internal import Larder
internal import LarderStore

/// The verbs that show stores and caches as wholes.
let listVerbs = [
    Verb(name: "ls", words: "[STORE]", summary: "the stores of this user, or the caches of a store") { arguments in
        if let name = arguments[0] {
            try listCaches(try OpenedStore(name, arguments), arguments)
        } else {
            try listStores(arguments)
        }
        return 0
    },
    Verb(name: "stats", words: "STORE [CACHE]", summary: "how full, how good, and which limit") { arguments in
        let store = try arguments.store()
        if let name = arguments[1] {
            try showStatistics(of: try store.cache(name), arguments)
        } else {
            try showStatistics(of: store, arguments)
        }
        return 0
    },
]

private func listStores(_ arguments: Arguments) throws {
    let folder = try OpenedStore.cachesFolder()
    var table = Table("STORE", " SIZE", " CACHES", " ENTRIES", "OPENED", "PATH")
    var nothing: String? = "There is no store in \(Text.escaped(folder))."
    for name in OpenedStore.names(in: folder) where name.hasSuffix(".sqlite") {
        let path = folder + "/" + name
        do {
            let store = try OpenedStore(path, arguments)
            let (look, files) = (try store.look(), store.files)
            let opened = look.caches.map(\.openedAt).max()
            let count = look.caches.reduce(0) { $0 + $1.count }
            let size = files.database + files.log + files.values
            if arguments.has("--json") {
                try Output.json([
                    "format": "larder.stores/1", "name": String(name.dropLast(7)), "path": path, "size": size,
                    "caches": look.caches.count, "entries": count, "openedAt": opened.map(Text.moment) ?? NSNull(),
                ])
            }
            table.add(
                Text.escaped(String(name.dropLast(7))), Text.bytes(size), "\(look.caches.count)", Text.number(count),
                opened.map { Text.ago($0, store.now) } ?? "never", Text.escaped(path))
        } catch let error as StoreError {
            // A file of another program is none of ours.
            if error.code == .foreignFile { continue }
            nothing = nil
            Output.complain("\(path): \(error.message)")
        } catch let failure as Failure {
            nothing = nil
            Output.complain(failure.message)
        }
    }
    if !arguments.has("--json") { try table.print(orSay: nothing) }
}

private func listCaches(_ store: OpenedStore, _ arguments: Arguments) throws {
    var table = Table("CACHE", "VERSION", "CODEC", "MAX AGE", " ENTRIES", "LIMITS", "OPENED")
    for cache in try store.look().caches {
        let declaration = cache.declaration
        if arguments.has("--json") {
            try Output.json(describe(cache).merging(["format": "larder.caches/1"]) { $1 })
            continue
        }
        table.add(
            Text.escaped(declaration.name), Text.escaped(declaration.version), Text.escaped(declaration.codec),
            declaration.ageRule.text, Text.number(cache.count), cache.limits.text, Text.ago(cache.openedAt, store.now))
    }
    if !arguments.has("--json") { try table.print(orSay: "The store has no cache.") }
}

private func describe(_ cache: CacheLook) -> [String: Any] {
    let declaration = cache.declaration
    return [
        "name": declaration.name, "version": declaration.version, "codec": declaration.codec,
        "maxAge": declaration.ageRule.json, "entries": cache.count, "countLimit": cache.limits.count ?? NSNull(),
        "sizeLimit": cache.limits.size ?? NSNull(), "openedAt": Text.moment(cache.openedAt),
        "activity": [String: Int64](Activity.names.map { ($1, cache.activity[$0] ?? 0) }) { first, _ in first },
    ]
}

extension Limits {
    /// The limits for people.
    var text: String {
        let parts = [count.map { "\(Text.number($0)) entries" }, size.map { Text.bytes($0) }].compactMap { $0 }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }
}

/// What the counters of a cache mean, in the order of their numbers.
enum Activity {
    static let names: [(Int64, String)] = [
        (0, "memoryHits"), (1, "diskHits"), (2, "misses"), (3, "expirations"), (4, "memoryEvictions"),
        (5, "countEvictions"), (6, "sizeEvictions"), (7, "spaceEvictions"), (8, "deciderEvictions"), (9, "writes"),
        (10, "removals"), (11, "failures"), (12, "loads"), (13, "staleHits"), (14, "loadFailures"),
        (15, "loadTimeouts"), (16, "loadMicroseconds"),
    ]

    /// The loads for people; nil if there was none.
    static func loads(_ activity: [Int64: Int64]) -> String? {
        let statistics = CacheStatistics(activity: activity)
        let times = statistics.loadTimes
        if statistics.loads + statistics.staleHits == 0 { return nil }
        let bound = times.bound(ofShare: 0.95).map { "95 of 100 within \(milliseconds($0))" }
        let parts = [
            "\(Text.number(Int64(statistics.loads))) keys loaded",
            times.mean.map { "\(milliseconds($0)) on average, \(bound ?? "one of 20 longer than a minute")" },
            "\(Text.number(Int64(statistics.loadFailures))) loads failed",
            "\(Text.number(Int64(statistics.loadTimeouts))) took too long",
            "\(Text.number(Int64(statistics.staleHits))) stale values served",
        ]
        return parts.compactMap { $0 }.joined(separator: ", ")
    }

    private static func milliseconds(_ time: Duration) -> String {
        let milliseconds = time / .milliseconds(1)
        return milliseconds < 10 ? String(format: "%.2f ms", milliseconds) : String(format: "%.0f ms", milliseconds)
    }

    /// The share of reads that found a value; nil without reads.
    static func hitRate(_ activity: [Int64: Int64]) -> Double? {
        let (hits, misses) = ((activity[0] ?? 0) + (activity[1] ?? 0), activity[2] ?? 0)
        return hits + misses == 0 ? nil : Double(hits) / Double(hits + misses)
    }

    static func percent(_ share: Double?) -> String { share.map { String(format: "%.1f %%", $0 * 100) } ?? "–" }
}

private func showStatistics(of store: OpenedStore, _ arguments: Arguments) throws {
    let (look, files) = (try store.look(), store.files)
    let waiting = look.retired.reduce(0) { $0 + $1.count }
    if arguments.has("--json") {
        return try Output.json([
            "format": "larder.stats/1", "path": store.path, "database": files.database, "log": files.log,
            "valueFiles": files.values, "valueFileCount": files.valueCount, "reserve": files.ballast,
            "purgedEntries": waiting, "freePages": look.freePages, "sizeLimit": look.limits.size ?? NSNull(),
            "caches": look.caches.map(describe), "openedBy": look.opener?.program ?? NSNull(),
            "openedByLibrary": look.opener?.library ?? NSNull(),
            "openIn": OpenedStore.users(of: store.path) ?? NSNull(),
        ])
    }
    try Output.line(Text.escaped(store.path))
    try Output.line()
    let parts = "database \(Text.bytes(files.database)), log \(Text.bytes(files.log))"
    let values = "\(Text.number(files.valueCount)) files \(Text.bytes(files.values))"
    try Output.line(
        "  On disk       \(Text.bytes(files.database + files.log + files.values)): \(parts), \(values)")
    try Output.line(
        "  Reclaimable   \(Text.bytes(Int64(look.freePages) * 4096)) of free pages, \(Text.number(waiting)) purged entries"
    )
    if look.limits != StoreLimits() {
        let size = look.limits.size.map { "\(Text.bytes($0)) of all caches" }
        let space = look.limits.freeSpace.map { "\(Text.bytes($0)) stay free" }
        try Output.line("  Limits        " + [size, space].compactMap { $0 }.joined(separator: ", "))
    }
    let users = OpenedStore.users(of: store.path)
    if users?.isEmpty != true {
        try Output.line("  Open in       " + (users?.joined(separator: ", ") ?? "unknown on this system"))
    }
    try Output.line("  Reserve       \(Text.bytes(files.ballast)) for a full disk")
    if let opener = look.opener {
        let who = opener.program.isEmpty ? "a program" : Text.escaped(opener.program)
        try Output.line(
            "  Opened by     \(who), \(Text.ago(opener.openedAt, store.now)), with Larder \(Text.escaped(opener.library))"
        )
    }
    try Output.line()
    var table = Table(
        "CACHE", "VERSION", "MAX AGE", " ENTRIES", "LIMITS", " HITS", " MEMORY", " DISK", " MISSES", " WRITES")
    for cache in look.caches {
        let activity = cache.activity
        table.add(
            Text.escaped(cache.declaration.name), Text.escaped(cache.declaration.version),
            cache.declaration.ageRule.text, Text.number(cache.count), cache.limits.text,
            Activity.percent(Activity.hitRate(activity)), Text.number(activity[0] ?? 0), Text.number(activity[1] ?? 0),
            Text.number(activity[2] ?? 0), Text.number(activity[9] ?? 0))
    }
    try table.print()
    try Output.line()
    try Output.line("Hits, misses and writes are those of ninety days, as programs wrote them: hourly, and on close.")
}

private func showStatistics(of cache: OpenedCache, _ arguments: Arguments) throws {
    let (survey, look) = (try Survey(cache), cache.look)
    let limits = survey.limits()
    if arguments.has("--json") {
        return try Output.json(
            describe(look).merging([
                "format": "larder.cache/1", "entries": survey.count, "size": survey.size, "expired": survey.expired,
                "unread": survey.unread,
                "pinned": survey.pinned, "files": survey.files,
                "limits": limits.map { limit in
                    ["entries": limit.count, "bytes": limit.size, "coldestAccess": Text.moment(limit.coldest)]
                },
            ]) { $1 })
    }
    let declaration = look.declaration
    try Output.line(
        "\(Text.escaped(declaration.name)) · version \(Text.escaped(declaration.version)) · codec \(Text.escaped(declaration.codec))"
            + " · max age \(declaration.ageRule.text) · limits \(look.limits.text)")
    try Output.line()
    try Output.line(
        "  Entries    \(Text.number(survey.count)) of \(Text.bytes(survey.size)): \(Text.number(survey.expired)) expired,"
            + " \(Text.number(survey.unread)) without a stored read, \(Text.number(survey.pinned)) pinned,"
            + " \(Text.number(survey.files)) in files of their own")
    let activity = look.activity
    try Output.line(
        "  90 days    \(Activity.percent(Activity.hitRate(activity))) of reads hit:"
            + " \(Text.number(activity[0] ?? 0)) in memory, \(Text.number(activity[1] ?? 0)) on disk,"
            + " \(Text.number(activity[2] ?? 0)) misses")
    let evictions = zip(5...8, ["for their number", "for their size", "for free space", "by closures"]).map {
        "\(Text.number(activity[Int64($0)] ?? 0)) \($1)"
    }
    try Output.line(
        "             \(Text.number(activity[9] ?? 0)) writes, \(Text.number(activity[3] ?? 0)) expirations; evictions:"
            + " \(evictions.joined(separator: ", "))")
    if let loads = Activity.loads(activity) { try Output.line("             \(loads)") }
    if limits.isEmpty { return }
    try Output.line()
    try Output.line("Which limit? The least recently read entry that would stay was read:")
    var table = Table(" ENTRIES", " BYTES", "LAST READ")
    for limit in limits {
        table.add(Text.number(limit.count), Text.bytes(limit.size), Text.ago(limit.coldest, cache.now))
    }
    try table.print()
    try Output.line("This is an age, not a hit rate, and a higher limit would keep all that is there now.")
    try Output.line("Accesses are stored to a grain of an hour or a day.")
}
