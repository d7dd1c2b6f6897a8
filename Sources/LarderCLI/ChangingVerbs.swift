internal import Foundation
internal import LarderLocks
internal import LarderStore

/// The verbs that change a store.
let changingVerbs = [
    Verb(
        name: "rm", words: "STORE CACHE [KEY...]", summary: "removes keys, or all with --tag or --prefix",
        flags: keyFlags, values: ["--tag", "--prefix"], isChange: true, run: remove),
    Verb(name: "clear", words: "STORE CACHE", summary: "removes and overwrites all entries", isChange: true) {
        arguments in
        let (cache, change, name) = try cacheToChange(arguments)
        let text = "Removes and overwrites all \(entries(try cache.rows.totals().count)) of “\(name)”."
        return try change.write(text, typing: cache.look.declaration.name) { store in
            try store.rows(of: cache.look.declaration).erase()
            return "“\(name)” is empty."
        }
    },
    Verb(name: "drop", words: "STORE CACHE", summary: "removes a cache with its entries", isChange: true) { arguments in
        let (cache, change, name) = try cacheToChange(arguments)
        let text = "Removes the cache “\(name)” with its \(entries(try cache.rows.totals().count))."
        return try change.write(text, typing: cache.look.declaration.name) { store in
            try store.removeCache(cache.look.declaration)
            return "“\(name)” is removed."
        }
    },
    Verb(name: "expire", words: "STORE [CACHE]", summary: "deletes what has expired", isChange: true, run: expire),
    Verb(
        name: "trim", words: "STORE CACHE", summary: "evicts the least recently read; --to-size --to-count",
        values: ["--to-size", "--to-count"], isChange: true, run: trim),
    Verb(name: "maintain", words: "STORE", summary: "does all upkeep that waits", isChange: true) { arguments in
        let look = try arguments.store()
        let purged = try look.look().retired.reduce(0) { $0 + $1.count }
        let text =
            "Deletes \(entries(purged)) that were purged, what has expired or is beyond a limit, and files that"
            + " belong to no entry."
        return try Change(of: look, arguments).write(text) { store in
            let report = try store.maintain()
            return "Deleted: \(Text.number(report.reclaimed)) purged, \(Text.number(report.expired)) expired,"
                + " \(Text.number(report.trimmed)) beyond a limit, \(Text.number(report.orphans)) files."
                + " The database gave back \(Text.bytes(report.freedBytes))."
        }
    },
    Verb(
        name: "repair", words: "STORE", summary: "removes what verify finds, and saves what can be read",
        isChange: true,
        run: repair),
    Verb(
        name: "import", words: "STORE FILE", summary: "writes what “export” has printed", isChange: true,
        run: importEntries),
    Verb(name: "delete", words: "STORE", summary: "deletes the store with all its files", isChange: true) { arguments in
        let path = try OpenedStore.path(of: arguments[0] ?? "")
        let text = try "Deletes \(Text.escaped(path)) and all that belongs to it: \(contents(of: path, arguments))."
        let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
        return try Change(at: path, arguments).perform(text, typing: name) {
            try Store.delete(path)
            return "The store is deleted."
        }
    },
]

/// The verbs that make other files of a store.
let copyingVerbs = [
    Verb(
        name: "bake", words: "STORE FILE", summary: "a compact copy, from which new stores can begin", common: []
    ) { arguments in
        let store = try arguments.store()
        let target = OpenedStore.realPath(URL(fileURLWithPath: arguments[1] ?? "").path)
        do { try store.store.bake(to: target) } catch let error as StoreError where error.code == .storageUnavailable {
            throw Failure(73, error.message)
        }
        let baked = try OpenedStore(target, arguments)
        let (look, files) = (try baked.look(), baked.files)
        let count = look.caches.reduce(0) { $0 + $1.count }
        try Output.line(
            "\(Text.escaped(target)) has \(Text.number(count)) entries of \(Text.number(look.caches.count)) caches, in"
                + " \(Text.bytes(files.database + files.values)).")
        return 0
    }
]

private func entries(_ count: some BinaryInteger) -> String {
    count == 1 ? "1 entry" : "\(Text.number(count)) entries"
}

private func cacheToChange(_ arguments: Arguments) throws -> (cache: OpenedCache, change: Change, name: String) {
    let store = try arguments.store()
    let cache = try store.cache(arguments[1] ?? "")
    return (cache, Change(of: store, arguments), Text.escaped(cache.look.declaration.name))
}

/// What “rm” removes.
private enum Removal {
    case keys([StoredKey])
    case tag(String)
    case prefix(String)

    init(_ arguments: Arguments, of cache: OpenedCache) throws {
        let keys = try arguments.words.dropFirst(2).map { try cache.key($0, arguments) }
        let tag = arguments.value("--tag")?.precomposedStringWithCanonicalMapping
        let prefix = arguments.value("--prefix")?.precomposedStringWithCanonicalMapping
        if prefix == "" { throw Failure.usage("Every key begins with an empty prefix. “larder clear” removes all.") }
        switch (keys.isEmpty, tag, prefix) {
        case (false, nil, nil): self = .keys(Array(Set(keys)))
        case (true, let tag?, nil): self = .tag(tag)
        case (true, nil, let prefix?): self = .prefix(prefix)
        default: throw Failure.usage("“rm” removes keys, or what --tag or --prefix names. Give one of the three.")
        }
    }

    /// The number of the entries that it names now.
    func count(in cache: OpenedCache) throws -> Int {
        switch self {
        case .keys(let keys): return try cache.rows.headers(keys).count
        case .tag(let tag): return try cache.rows.headers(tagged: tag).count
        case .prefix(let prefix):
            var count = 0
            try cache.forEachHeader(KeyRange(prefix: prefix)) { _ in
                count += 1
                return true
            }
            return count
        }
    }

    func perform(on rows: CacheRows) throws -> Int {
        switch self {
        case .keys(let keys): try rows.run(.remove(keys)).rows.count
        case .tag(let tag): try rows.removeAll(tagged: tag)
        case .prefix(let prefix): try rows.removeAll(prefix: prefix)
        }
    }
}

private func remove(_ arguments: Arguments) throws -> Int32 {
    let (cache, change, name) = try cacheToChange(arguments)
    let removal = try Removal(arguments, of: cache)
    let count = try removal.count(in: cache)
    if count == 0 {
        Output.complain("“\(name)” has no such entry.")
        return 1
    }
    var text = "Removes \(entries(count)) of “\(name)”."
    if case .keys(let keys) = removal, count < keys.count {
        text += " It does not have the other \(keys.count - count == 1 ? "key" : "\(keys.count - count) keys")."
    }
    return try change.write(text) { store in
        "Removed \(entries(try removal.perform(on: store.rows(of: cache.look.declaration))))."
    }
}

private func expire(_ arguments: Arguments) throws -> Int32 {
    let store = try arguments.store()
    let look = try store.look(counts: false)
    let caches =
        if let name = arguments[1] { [try store.cache(name)] } else {
            try look.caches.map { try store.cache($0.declaration.name) }
        }
    var count = 0
    for cache in caches {
        try cache.forEachHeader { header in
            if header.end < cache.now { count += 1 }
            return true
        }
    }
    if count == 0 {
        try Output.line("Nothing has expired.")
        return 0
    }
    let text = "Deletes \(entries(count)) that \(count == 1 ? "has" : "have") expired."
    return try Change(of: store, arguments).write(text) { store in
        var deleted = 0
        for cache in caches {
            let rows = store.rows(of: cache.look.declaration)
            var last: PagePosition?
            repeat {
                let page = try rows.headers(KeyRange(), after: last, limit: 1024, withAccess: true)
                deleted += try rows.remove(page.rows.filter { $0.end < cache.now }, .expired)
                last = page.next
            } while last != nil
        }
        return "Deleted \(entries(deleted))."
    }
}

private func trim(_ arguments: Arguments) throws -> Int32 {
    let (size, count) = (try arguments.bytes("--to-size"), try arguments.number("--to-count"))
    if size == nil && count == nil {
        throw Failure.usage("“trim” needs a limit: --to-size 64M, --to-count 1000, or both.")
    }
    let (cache, change, name) = try cacheToChange(arguments)
    let limits = Limits(count: count.map { Int64($0) }, size: size)
    let survey = try Survey(cache)
    guard let evicted = survey.beyond(limits) else {
        try Output.line("“\(name)” is within these limits.")
        return 0
    }
    let text =
        "Deletes what has expired. Then evicts \(entries(evicted.count)) of “\(name)” that were read longest ago:"
        + " \(Text.bytes(evicted.size)). Pinned entries stay: \(Text.number(survey.held.count))."
    return try change.write(text) { store in
        let rows = store.rows(of: cache.look.declaration)
        try rows.trim(to: limits)
        let totals = try rows.totals()
        return "“\(name)” has \(entries(totals.count)) of \(Text.bytes(totals.size))."
    }
}

private func repair(_ arguments: Arguments) throws -> Int32 {
    let path = try OpenedStore.path(of: arguments[0] ?? "")
    var text = "Sets the damaged database aside, and copies what can be read of it."
    var look: OpenedStore?
    do {
        let store = try OpenedStore(path, arguments)
        look = store
        let report = try store.store.verify()
        if report.problems.isEmpty {
            try Output.line("\(entries(report.entryCount)), no problem.")
            return 0
        }
        for problem in report.problems { try Output.line("✗ " + Text.escaped(problem)) }
        if report.damagedCount > 0 { text = "Deletes \(entries(report.damagedCount)) that no program can read." }
    } catch let error as StoreError where error.code == .corrupt {
    } catch let error as StoreError where error.message.contains(StoreError.missingIndex) {
        text = "Opens the store once for writing: " + error.message
    }
    let change = look.map { Change(of: $0, arguments) } ?? Change(at: path, arguments)
    return try change.perform(text) {
        let salvages = Mutex<[SalvageReport]>([])
        let store = try change.open(.salvage) { event in
            if case .replaced(let salvage) = event { salvages.withLock { $0.append(salvage) } }
        }
        _ = try store.verify(repairing: true)
        var done = "The store is sound, with \(entries(try store.look(activityOf: 0, until: 0, counts: true).count))."
        try store.close()
        for salvage in salvages.withLock({ $0 }) {
            done +=
                " \(entries(salvage.kept)) were copied, and of \(Text.number(salvage.lost)) more only a trace was found."
            done += " The damaged database is \(Text.escaped(salvage.path))."
        }
        return done
    }
}

private func contents(of path: String, _ arguments: Arguments) throws -> String {
    do {
        let store = try OpenedStore(path, arguments)
        let (look, files) = (try store.look(), store.files)
        let count = look.caches.reduce(0) { $0 + $1.count }
        return
            "\(look.caches.count) caches, \(entries(count)), \(Text.bytes(files.database + files.log + files.values))"
    } catch let error as StoreError where error.code == .corrupt {
        return "a store that cannot be read"
    }
}
