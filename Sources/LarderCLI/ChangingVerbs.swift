internal import Foundation
internal import Larder
internal import LarderStore

/// The verbs that change a store.
let changingVerbs = [
    Verb(
        name: "rm", words: "STORE CACHE [KEY...]", summary: "removes keys, or all with --tag or --prefix",
        flags: keyFlags, values: ["--tag", "--prefix"], isChange: true, run: remove),
    Verb(name: "clear", words: "STORE CACHE", summary: "removes all entries", isChange: true) { arguments in
        let (cache, change, name) = try cacheToChange(arguments)
        let text = "Removes all \(entries(try cache.rows.totals().count)) of “\(name)”."
        return try change.perform(text, typing: cache.look.declaration.name) { store in
            try store.found(cache.look.declaration).run(.clear)
            return "“\(name)” is empty."
        }
    },
    Verb(name: "drop", words: "STORE CACHE", summary: "removes a cache with its entries", isChange: true) { arguments in
        let (cache, change, name) = try cacheToChange(arguments)
        let text = "Removes the cache “\(name)” with its \(entries(try cache.rows.totals().count))."
        return try change.perform(text, typing: cache.look.declaration.name) { store in
            _ = try store.removeCache(named: cache.look.declaration.name)
            return "“\(name)” is gone."
        }
    },
    Verb(name: "expire", words: "STORE [CACHE]", summary: "deletes what has expired", isChange: true, run: expire),
    Verb(
        name: "trim", words: "STORE CACHE", summary: "evicts the least recently read; --to-size --to-count",
        values: ["--to-size", "--to-count"], isChange: true, run: trim),
    Verb(name: "maintain", words: "STORE", summary: "does all upkeep that waits", isChange: true) { arguments in
        let look = try OpenedStore(arguments[0] ?? "", arguments)
        let purged = try look.look().retired.reduce(0) { $0 + $1.count }
        let text =
            "Deletes \(entries(purged)) that were purged, what has expired or is beyond a limit, and files that"
            + " belong to no entry."
        return try Change(of: look, arguments).perform(text) { store in
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

private func entries(_ count: some BinaryInteger) -> String {
    count == 1 ? "1 entry" : "\(Text.number(count)) entries"
}

private func cacheToChange(_ arguments: Arguments) throws -> (cache: OpenedCache, change: Change, name: String) {
    let store = try OpenedStore(arguments[0] ?? "", arguments)
    let cache = try store.cache(arguments[1] ?? "")
    return (cache, Change(of: store, arguments), Text.escaped(cache.look.declaration.name))
}

private func remove(_ arguments: Arguments) throws -> Int32 {
    let (cache, change, name) = try cacheToChange(arguments)
    let keys = try arguments.words.dropFirst(2).map { try cache.key($0, arguments) }
    let tag = arguments.value("--tag")?.precomposedStringWithCanonicalMapping
    let prefix = arguments.value("--prefix")?.precomposedStringWithCanonicalMapping
    if [!keys.isEmpty, tag != nil, prefix != nil].filter(\.self).count != 1 {
        throw Failure.usage("“rm” removes keys, or what --tag or --prefix names. Give one of the three.")
    }
    var count = 0
    if let tag {
        count = try cache.rows.headers(tagged: tag).count
    } else if let prefix {
        try cache.forEachHeader(KeyRange(prefix: prefix)) { _ in
            count += 1
            return true
        }
    } else {
        count = try cache.rows.headers(keys).count
    }
    if count == 0 {
        Output.complain("“\(name)” has no such entry.")
        return 1
    }
    return try change.perform("Removes \(entries(count)) of “\(name)”.") { store in
        let rows = store.found(cache.look.declaration)
        let removed =
            if let tag { try rows.removeAll(tagged: tag) } else if let prefix {
                try rows.removeAll(prefix: prefix)
            } else {
                try rows.run(.remove(keys)).rows.count
            }
        return "Removed \(entries(removed))."
    }
}

private func expire(_ arguments: Arguments) throws -> Int32 {
    let store = try OpenedStore(arguments[0] ?? "", arguments)
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
    return try Change(of: store, arguments).perform(text) { store in
        var deleted = 0
        for cache in caches {
            let rows = store.found(cache.look.declaration)
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
        try Output.line("“\(name)” is within that.")
        return 0
    }
    let text =
        "Deletes what has expired, and evicts \(entries(evicted.count)) of “\(name)”, \(Text.bytes(evicted.size)), those"
        + " that were read longest ago. \(Text.number(survey.held.count)) pinned stay."
    return try change.perform(text) { store in
        let rows = store.found(cache.look.declaration)
        try rows.trim(to: limits)
        let totals = try rows.totals()
        return "“\(name)” has \(entries(totals.count)) of \(Text.bytes(totals.size))."
    }
}

private func repair(_ arguments: Arguments) throws -> Int32 {
    var (path, text) = ("", "")
    do {
        let store = try OpenedStore(arguments[0] ?? "", arguments)
        path = store.path
        let report = try store.store.verify()
        if report.problems.isEmpty {
            try Output.line("\(entries(report.entryCount)), no problem.")
            return 0
        }
        for problem in report.problems { try Output.line("✗ " + Text.escaped(problem)) }
        text = report.damagedCount > 0 ? "Deletes \(entries(report.damagedCount)) that no program can read. " : ""
    } catch let error as StoreError where error.code == .corrupt {
        path = try OpenedStore.path(of: arguments[0] ?? "")
    }
    text += "A damaged database is set aside, and what can be read of it is copied."
    return try Change(at: path, arguments).perform(text, recovery: .salvage) { store in
        let report = try store.verify(repairing: true)
        let lost = report.salvage.map { " \(entries($0.lost)) could not be saved." } ?? ""
        return "The store is sound, with \(entries(try store.caches().reduce(0) { $0 + $1.count }))." + lost
    }
}

private func contents(of path: String, _ arguments: Arguments) throws -> String {
    do {
        let store = try OpenedStore(path, arguments)
        let (look, files) = (try store.look(), store.files)
        let count = look.caches.reduce(0) { $0 + $1.count }
        return
            "\(look.caches.count) caches, \(entries(count)), \(Text.bytes(files.database + files.log + files.values))"
    } catch let error as StoreError where error.code == .corrupt || error.code == .newerSchema {
        return "a store that cannot be read"
    }
}
