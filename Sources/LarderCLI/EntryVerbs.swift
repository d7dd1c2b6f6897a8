internal import Foundation
internal import LarderStore

let keyFlags = ["--text", "--integer", "--hex"]

/// The verbs that show entries.
let entryVerbs = [
    Verb(
        name: "keys", words: "STORE CACHE",
        summary: "keys, one a line; --prefix --match --tag --expired --larger --older --by",
        flags: ["--expired", "-r", "-0", "--hex"],
        values: ["--prefix", "--match", "--tag", "--larger", "--older", "--by", "--limit"],
        run: { arguments in
            try listKeys(try arguments.cache(), arguments)
            return 0
        }),
    Verb(
        name: "top", words: "STORE CACHE", summary: "the largest, oldest or coldest entries; --by size|age|access",
        values: ["--by", "--limit"],
        run: { arguments in
            try listTop(try arguments.cache(), arguments)
            return 0
        }),
    Verb(name: "tags", words: "STORE CACHE", summary: "the tags, and how many entries have each") { arguments in
        let cache = try arguments.cache()
        let tags = try cache.rows.tags { cache.now }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var table = Table("TAG", " ENTRIES")
        for (tag, count) in tags {
            let tag = shown(tag, arguments)
            if arguments.has("--json") { try Output.json(["format": "larder.tags/1", "tag": tag, "entries": count]) }
            table.add(Text.escaped(tag), Text.number(count))
        }
        if !arguments.has("--json") { try table.print(orSay: "No entry has a tag.") }
        return 0
    },
    Verb(
        name: "show", words: "STORE CACHE KEY", summary: "all that is known of an entry but its value", flags: keyFlags,
        run: { arguments in
            let cache = try arguments.cache()
            guard let header = try header(of: cache, arguments) else { return 1 }
            if arguments.has("--json") {
                try Output.json(describe(header, arguments).merging(["format": "larder.entry/1"]) { $1 })
            } else {
                try show(header, cache, arguments)
            }
            return 0
        }),
    Verb(
        name: "get", words: "STORE CACHE KEY", summary: "the value; --raw for its bytes", flags: keyFlags + ["--raw"],
        common: ["--json", "--at"],
        run: { arguments in
            let cache = try arguments.cache()
            let key = try cache.key(arguments[2] ?? "", arguments)
            switch try cache.rows.inspect(key) {
            case .row(let row):
                try printValue(row.payload, cache, arguments)
                if row.header.end < cache.now { Output.complain("It has expired: a program finds nothing there.") }
            case .damaged:
                throw Failure(65, "The entry \(key.text(arguments)) is damaged. The program finds nothing there.")
            case .absent, .superseded:
                Output.complain("The cache has no key \(key.text(arguments)).")
                return 1
            }
            return 0
        }),
    Verb(name: "export", words: "STORE [CACHE]", summary: "entries as lines of JSON") { arguments in
        let store = try arguments.store()
        let names = try arguments[1].map { [$0] } ?? store.look(counts: false).caches.map(\.declaration.name)
        for name in names { try export(try store.cache(name), arguments) }
        return 0
    },
]

/// A tag, or a hash of it.
func shown(_ tag: String, _ arguments: Arguments) -> String {
    arguments.has("--redact") ? StoredKey.text(tag).text(arguments) : tag
}

/// The header of the key of a call; says so if there is none.
private func header(of cache: OpenedCache, _ arguments: Arguments) throws -> EntryHeader? {
    let key = try cache.key(arguments[2] ?? "", arguments)
    let header = try cache.rows.header(key, withAccess: true)
    if header == nil { Output.complain("The cache has no key \(key.text(arguments)).") }
    return header
}

// MARK: Lists

private func listKeys(_ cache: OpenedCache, _ arguments: Arguments) throws {
    let order = try arguments.choice("--by", of: ["key", "written", "accessed", "size"])
    let (larger, older) = (try arguments.bytes("--larger"), try arguments.milliseconds("--older"))
    let (limit, pattern) = (try arguments.number("--limit") ?? .max, arguments.value("--match"))
    let prefix = arguments.value("--prefix")?.precomposedStringWithCanonicalMapping
    let range = KeyRange(prefix: prefix, isDescending: arguments.has("-r"))
    var count = 0
    func show(_ header: EntryHeader) throws -> Bool {
        if arguments.has("--expired") != (header.end < cache.now) { return true }
        if let larger, header.size <= larger { return true }
        if let older, cache.now.subtractingSaturated(header.writtenAt) <= older { return true }
        if let pattern {
            guard case .text(let text) = header.key, fnmatch(pattern, text, 0) == 0 else { return true }
        }
        if count == limit { return false }
        count += 1
        if arguments.has("--json") {
            try Output.json(describe(header, arguments).merging(["format": "larder.key/1"]) { $1 })
        } else {
            var text = header.key.text(arguments)
            switch header.key {
            case .text(let exact) where arguments.has("-0") && !arguments.has("--redact"): text = exact
            case .blob(let bytes) where arguments.has("--hex") && !arguments.has("--redact"):
                text = Text.hexadecimal(bytes)
            default: break
            }
            try Output.put(text + (arguments.has("-0") ? "\0" : "\n"))
        }
        return true
    }
    if prefix != nil || pattern != nil, try cache.rows.headers(KeyRange(prefix: ""), limit: 1).rows.isEmpty {
        Output.complain("The cache has no keys that are texts, and --prefix and --match find those alone.")
    }
    if let tag = arguments.value("--tag") {
        if order != nil || range.isDescending {
            throw Failure.usage("“--tag” lists in no order: leave out --by and -r.")
        }
        for header in try cache.rows.headers(tagged: tag.precomposedStringWithCanonicalMapping)
        where range.contains(header.key) {
            // Its last access is not in the list.
            if try !show(try cache.rows.header(header.key, withAccess: true) ?? header) { return }
        }
        return
    }
    guard let order, order != "key" else { return try cache.forEachHeader(range, show) }
    try forEach(in: cache, by: order == "written" ? .written : order == "accessed" ? .accessed : .size, range, show)
}

/// Calls `body` for each header in an order that no index has, until it returns false.
private func forEach(
    in cache: OpenedCache, by order: RowOrder, _ range: KeyRange, _ body: (EntryHeader) throws -> Bool
) throws {
    let list = try cache.rows.list(order, range)
    for place in stride(from: 0, to: list.count, by: 256) {
        for header in try cache.rows.headers(list, place..<min(place + 256, list.count)) where try !body(header) {
            return
        }
    }
    try cache.requireEnd()
}

private func listTop(_ cache: OpenedCache, _ arguments: Arguments) throws {
    let order = try arguments.choice("--by", of: ["size", "age", "access"]) ?? "size"
    var rest = try arguments.number("--limit") ?? 20
    var table = Table(" SIZE", "WRITTEN", "LAST READ", "EXPIRES", "WHERE", "KEY")
    let rows: RowOrder = order == "size" ? .size : order == "age" ? .written : .accessed
    try forEach(in: cache, by: rows, KeyRange(isDescending: order == "size")) { header in
        if rest == 0 { return false }
        rest -= 1
        if arguments.has("--json") {
            try Output.json(describe(header, arguments).merging(["format": "larder.key/1"]) { $1 })
            return true
        }
        table.add(
            Text.bytes(header.size), Text.ago(header.writtenAt, cache.now),
            header.accessedAt == header.writtenAt ? "not stored" : Text.ago(header.accessedAt, cache.now),
            expiry(of: header, cache.now), header.file == nil ? "row" : "file", header.key.text(arguments))
        return true
    }
    if !arguments.has("--json") { try table.print(orSay: rest > 0 ? "The cache is empty." : nil) }
}

private func expiry(of header: EntryHeader, _ now: Int64) -> String {
    if header.end == .max { return "never" }
    return header.end < now ? "expired" : "in " + Text.duration(header.end.subtractingSaturated(now))
}

private func export(_ cache: OpenedCache, _ arguments: Arguments) throws {
    var last: PagePosition?
    repeat {
        let page = try cache.rows.rows(after: last, withAccess: true)
        for row in page.rows {
            var line = describe(row.header, arguments)
            let declaration = cache.look.declaration
            (line["format"], line["cache"], line["version"]) = (
                "larder.export/1", declaration.name, declaration.version
            )
            line["codec"] = declaration.codec
            if !arguments.has("--redact") {
                line["payload"] = row.payload.base64EncodedString()
                line["ownEnd"] = row.header.expiresAt.map(Text.moment) ?? NSNull()
                line["hasFixedEnd"] = row.header.meta.hasFixedEnd
                line["ownSlidingAge"] = row.header.meta.slidingAge ?? NSNull()
                line["refresh"] = row.header.meta.refresh?.number ?? NSNull()
                line["extendedData"] = row.header.meta.extendedData?.base64EncodedString() ?? NSNull()
            }
            try Output.json(line)
        }
        last = page.next
    } while last != nil
    try cache.requireEnd()
}

// MARK: One entry

private func describe(_ header: EntryHeader, _ arguments: Arguments) -> [String: Any] {
    [
        "key": header.key.json(arguments), "size": header.size, "writtenAt": Text.moment(header.writtenAt),
        "accessedAt": Text.moment(header.accessedAt),
        "expiresAt": header.end == .max ? NSNull() : Text.moment(header.end), "isPinned": header.meta.isPinned,
        "isFile": header.file != nil, "cost": header.meta.cost ?? NSNull(),
        "tags": header.meta.tags.sorted().map { shown($0, arguments) },
    ]
}

private func show(_ header: EntryHeader, _ cache: OpenedCache, _ arguments: Arguments) throws {
    let (declaration, meta) = (cache.look.declaration, header.meta)
    func line(_ name: String, _ text: String) throws {
        try Output.line(name.padding(toLength: 12, withPad: " ", startingAt: 0) + text)
    }
    func moment(_ milliseconds: Int64) -> String {
        "\(Text.moment(milliseconds)) (\(Text.ago(milliseconds, cache.now)))"
    }
    try line("key", header.key.text(arguments))
    try line(
        "cache",
        "\(Text.escaped(declaration.name)), version \(Text.escaped(declaration.version)), \(Text.escaped(declaration.codec))"
    )
    try line(
        "size",
        "\(Text.number(header.size)) bytes, \(header.file.map { arguments.has("--redact") ? "in a file" : "in the file \(Text.escaped($0))" } ?? "in its row")"
    )
    try line("written", moment(header.writtenAt))
    try line("last read", header.accessedAt == header.writtenAt ? "not stored" : moment(header.accessedAt))
    let isOwn = header.expiresAt != nil || meta.slidingAge != nil
    let end = header.end == .max ? "never" : "\(Text.moment(header.end)) (\(expiry(of: header, cache.now)))"
    try line("expires", end + (isOwn ? ", by an age of its own" : ", by the age of the cache"))
    try line("pinned", meta.isPinned ? "yes" : "no")
    if let cost = meta.cost { try line("cost", Text.number(cost)) }
    if !meta.tags.isEmpty {
        try line("tags", meta.tags.sorted().map { Text.escaped(shown($0, arguments)) }.joined(separator: ", "))
    }
    if let data = meta.extendedData { try line("extended", "\(Text.number(data.count)) bytes") }
}

private func printValue(_ bytes: Data, _ cache: OpenedCache, _ arguments: Arguments) throws {
    if arguments.has("--raw") { return try Output.put(bytes) }
    let codec = cache.look.declaration.codec
    if arguments.has("--json") {
        return try Output.json(["format": "larder.value/1", "codec": codec, "payload": bytes.base64EncodedString()])
    }
    let text: String? =
        switch codec {
        case "cbor": CBORText.text(of: bytes, indented: true)
        case "json", "json-custom": String(data: bytes, encoding: .utf8)
        case "plist": xml(of: bytes)
        case "data": String(data: bytes, encoding: .utf8) ?? "h'\(Text.hexadecimal(bytes))'"
        default: nil
        }
    guard let text else {
        throw Failure(
            65,
            "The \(bytes.count) bytes of the value cannot be shown: they are of the codec “\(Text.escaped(codec))”."
                + " --raw prints them.")
    }
    try Output.line(Text.visible(text))
}

/// The XML of a property list; nil if the bytes are none.
private func xml(of bytes: Data) -> String? {
    do {
        let list = try PropertyListSerialization.propertyList(from: bytes, format: nil)
        let data = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
        return String(decoding: data, as: UTF8.self)
    } catch {
        return nil
    }
}
