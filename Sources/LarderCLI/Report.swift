internal import Foundation
internal import Larder
internal import LarderStore

/// The verbs that draw.
let drawingVerbs = [
    Verb(
        name: "watch", words: "STORE [CACHE]",
        summary: "a line a second: entries, writes, and hits once programs report them (hourly)",
        values: ["--every", "--limit"], common: ["--json", "--redact"], run: watch),
    Verb(
        name: "report", words: "STORE", summary: "all of it as one page; -o FILE.html", values: ["-o"],
        common: ["--redact", "--at"]
    ) { arguments in
        guard let file = arguments.value("-o") else { throw Failure.usage("“report” needs a file: -o report.html") }
        let store = try arguments.store()
        let (path, main) = (OpenedStore.realPath(file), OpenedStore.realPath(store.path))
        if path.hasPrefix(main) || path.hasPrefix(ValueFiles.folder(of: main) + "/") {
            throw Failure.usage("\(file) belongs to the store. Name another file.")
        }
        let page = try Report(store, arguments).page()
        do {
            try Data(page.utf8).write(to: URL(fileURLWithPath: file))
        } catch {
            throw Failure(73, "\(file) cannot be written: \(error.localizedDescription)")
        }
        try Output.line("\(file), \(Text.bytes(Int64(page.utf8.count)))")
        return 0
    },
]

/// A store as one page that needs no network, no script and no second file.
private struct Report {
    let store: OpenedStore
    let look: StoreLook
    let arguments: Arguments
    /// The caches with blocks of their own; more would make the page too long to send.
    private static let shownCaches = 8
    private static let listedCaches = 30

    init(_ store: OpenedStore, _ arguments: Arguments) throws {
        (self.store, self.arguments, look) = (store, arguments, try store.look())
    }

    func page() throws -> String {
        let name =
            arguments.has("--redact") ? "A store" : Drawing.escaped(URL(fileURLWithPath: store.path).lastPathComponent)
        let caches = look.caches.sorted { ($1.count, $0.declaration.name) < ($0.count, $1.declaration.name) }
        let blocks = try caches.prefix(Self.shownCaches).map(block)
        let others = caches.count - blocks.count
        let onPaper = blocks.count > 2 ? "<p class=\"paper\">On paper only the two largest caches are shown.</p>" : ""
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>\(name) · Larder</title>
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <meta name="viewport" content="width=device-width"><style>\(Self.style)</style></head><body>
            <h1>\(name)</h1>
            <p>\(Text.moment(store.now)) · larder \(CacheManager.libraryVersion)</p>
            \(tiles)<h2>Where the bytes are</h2>
            \(Drawing.parts(bytes, "Where the bytes are"))\(try summary(caches))\(blocks.joined())\(onPaper)
            \(others > 0 ? "<p>\(others) more caches have no block of their own.</p>" : "")
            \(try advice)</body></html>

            """
    }

    private var bytes: [(name: String, value: Int64)] {
        let (files, free) = (store.files, Int64(look.freePages) * 4096)
        return [
            ("database", max(0, files.database - free)), ("free pages", free), ("log", files.log),
            ("files", files.values), ("reserve for a full disk", files.ballast),
        ]
    }

    private var tiles: String {
        let rates = look.caches.compactMap { Activity.hitRate($0.activity) }
        let limit = look.limits.size.map { " of \(Text.bytes($0))" } ?? ""
        let tiles = [
            (Text.bytes(bytes.reduce(0) { $0 + $1.value }) + limit, "on disk"), (Text.number(look.count), "entries"),
            (Activity.percent(rates.max()), "best hit rate"), (Activity.percent(rates.min()), "worst hit rate"),
            (Text.number(look.retired.reduce(0) { $0 + $1.count }), "purged entries wait"),
        ]
        return "<div class=\"tiles\">"
            + tiles.map { "<div><b>\($0.0)</b>\($0.1)</div>" }.joined() + "</div>\n"
    }

    private func row(_ cells: [String], _ cell: String = "td") -> String {
        "<tr>" + cells.map { "<\(cell)>\($0)</\(cell)>" }.joined() + "</tr>\n"
    }

    private func summary(_ caches: [CacheLook]) throws -> String {
        let heads = ["Cache", "Version", "Max age", "Entries", "Bytes", "Limits", "Hits", "Misses", "Writes"]
        let sizes = Dictionary(try store.store.caches().map { (ExactName($0.declaration.name), $0.size) }) { $1 }
        let rows = caches.prefix(Self.listedCaches).map { cache in
            let (declaration, activity) = (cache.declaration, cache.activity)
            return row([
                name(of: cache), Drawing.escaped(Text.short(declaration.version)), declaration.ageRule.text,
                Text.number(cache.count), sizes[ExactName(declaration.name)].map(Text.bytes) ?? "–", cache.limits.text,
                Activity.percent(Activity.hitRate(activity)), Text.number(activity[2] ?? 0),
                Text.number(activity[9] ?? 0),
            ])
        }
        return "<h2>Caches</h2><table>" + row(heads, "th") + rows.joined() + "</table>\n"
            + (caches.count > rows.count ? "<p>\(caches.count - rows.count) smaller caches are left out.</p>\n" : "")
    }

    private func name(of cache: CacheLook) -> String { Drawing.escaped(Text.short(cache.declaration.name)) }

    // MARK: One cache

    private func block(_ look: CacheLook) throws -> String {
        do {
            return try block(look, OpenedCache(look: look, rows: store.store.rows(of: look.declaration), of: store))
        } catch let error as StoreError where error.code == .superseded {
            return "<section><h2>\(name(of: look))</h2><p>The cache was purged while it was read.</p></section>\n"
        }
    }

    private func block(_ look: CacheLook, _ cache: OpenedCache) throws -> String {
        let survey = try Survey(cache, shown: 10)
        if survey.count == 0 {
            return "<section><h2>\(name(of: look))</h2>\n<p>No entries.</p>\n" + (try hits(look)) + "</section>\n"
        }
        let tags = try cache.rows.tags { cache.now }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(20)
        let tagTexts = tags.map { tag, count in
            let text = shown(tag, arguments)
            return "\(Drawing.escaped(Text.short(text))) (\(Text.number(count)))"
        }
        let counts =
            "\(survey.count == 1 ? "1 entry" : "\(Text.number(survey.count)) entries") of \(Text.bytes(survey.size)): \(Text.number(survey.expired)) expired,"
            + " \(Text.number(survey.unread)) without a stored read, \(Text.number(survey.pinned)) pinned"
        return "<section><h2>\(name(of: look))</h2>\n<p>\(counts)</p>\n" + (try hits(look))
            + "<div class=\"pair\"><div><h3>Sizes</h3>" + sizes(survey) + "</div><div><h3>Ages</h3>" + ages(survey)
            + "</div></div>\n" + curve(survey, cache.now) + "<div class=\"pair\"><div><h3>The largest</h3>"
            + entries(survey.largest, cache.now) + "</div><div><h3>Read longest ago</h3>"
            + entries(survey.coldest, cache.now) + "</div></div>\n"
            + (tags.isEmpty ? "" : "<p>Tags: \(tagTexts.joined(separator: ", "))</p>\n") + "</section>\n"
    }

    private func hits(_ cache: CacheLook) throws -> String {
        let today = store.now / 86_400_000
        let found = try store.store.days(of: cache.declaration.name, since: today - 90)
        if !found.values.contains(where: { ($0[0] ?? 0) + ($0[1] ?? 0) + ($0[2] ?? 0) > 0 }) { return "" }
        let days = (today - 89...today).map { day in
            let (name, counts) = (String(Text.moment(day * 86_400_000).prefix(10)), found[day] ?? [:])
            return (name: name, hits: (counts[0] ?? 0) + (counts[1] ?? 0), misses: counts[2] ?? 0)
        }
        return "<h3>Hits <i class=\"c0\"></i> and misses <i class=\"c1\"></i> by day</h3>"
            + Drawing.days(days, "Hits and misses by day")
    }

    private func sizes(_ survey: Survey) -> String {
        let names = Survey.sizes.map { size in
            size == .max
                ? "more" : size < 1_024 ? "\(size)" : size < 1_048_576 ? "\(size / 1_024)K" : "\(size / 1_048_576)M"
        }
        return Drawing.histogram(zip(names, survey.bySize).map { (name: $0, value: $1) }, "Entries by size, up to")
    }

    private func ages(_ survey: Survey) -> String {
        let names = ["1 h", "6 h", "1 d", "3 d", "7 d", "30 d", "90 d", "1 y", "more"]
        return Drawing.histogram(zip(names, survey.byAge).map { (name: $0, value: $1) }, "Entries by age, up to")
    }

    private func curve(_ survey: Survey, _ now: Int64) -> String {
        let limits = survey.limits(60)
        guard let last = limits.last else { return "" }
        let points = limits.map { (x: Double($0.size), y: Double(max(0, now.subtractingSaturated($0.coldest)))) }
        let oldest = max(0, now.subtractingSaturated(limits.map(\.coldest).min() ?? now))
        return "<h3>Which limit? The age of the oldest access that each size limit would keep</h3>"
            + Drawing.curve(
                [(x: 0, y: 0)] + points, "Age of the coldest entry by limit", x: ("0 B", Text.bytes(last.size)),
                y: ("now", Text.duration(oldest)))
            + "<p>This is an age, not a hit rate. Accesses are stored to a grain of an hour or a day.</p>\n"
    }

    private func entries(_ headers: [EntryHeader], _ now: Int64) -> String {
        let rows = headers.map { header in
            let read = header.accessedAt == header.writtenAt ? "–" : Text.ago(header.accessedAt, now)
            return row([
                Text.bytes(header.size), Text.ago(header.writtenAt, now), read,
                Drawing.escaped(Text.short(header.key.text(arguments))),
            ])
        }
        return "<table>" + row(["Size", "Written", "Read", "Key"], "th") + rows.joined() + "</table>"
    }

    private var advice: String {
        get throws {
            let items = try hints(on: store, arguments).map { hint in
                "<li>\(Drawing.escaped(hint.text))"
                    + (hint.command.map { "<br><code>\(Drawing.escaped($0))</code>" } ?? "")
            }
            return "<h2>What is unusual</h2>\n"
                + (items.isEmpty ? "<p>Nothing.</p>" : "<ul>\(items.joined(separator: "\n"))</ul>") + "\n"
        }
    }

    private static let style = """
        :root{color-scheme:light dark;--ink:#1d1d1f;--soft:#6e6e73;--line:#d2d2d7;--back:#fff;--c0:#2a6fdb;--c1:#e08a1e}
        @media(prefers-color-scheme:dark){:root{--ink:#f2f2f4;--soft:#a1a1a8;--line:#3c3c42;--back:#161618;--c0:#6aa5ff;--c1:#f0aa4a}}
        body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:760px;margin:2rem auto;padding:0 1rem}
        h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:1.6rem 0 .4rem}h3{font-size:.85rem;margin:.8rem 0 .2rem;color:var(--soft)}
        p,i{color:var(--soft)}i{display:inline-block;width:.7em;height:.7em}i.c0{background:var(--c0)}i.c1{background:var(--c1)}i.c2{background:#7a5cc8}i.c3{background:#2f9e77}i.c4{background:#c2405f}
        .tiles{display:flex;flex-wrap:wrap;gap:1.5rem}.tiles b{display:block;font-size:1.4rem}.tiles div{color:var(--soft)}
        .tiles b{color:var(--ink)}table{border-collapse:collapse;font-size:.8rem;display:block;overflow-x:auto}
        th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-bottom:1px solid var(--line);white-space:nowrap}
        td:last-child{white-space:normal;overflow-wrap:break-word;min-width:5rem}
        .pair{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem}@media(max-width:600px){.pair{grid-template-columns:1fr}section>svg text{font-size:17px}}
        svg{width:100%;height:auto;overflow:visible}text{font:9px system-ui,sans-serif;fill:var(--soft)}
        .c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:#7a5cc8}.c3{fill:#2f9e77}.c4{fill:#c2405f}.c5{fill:#8a8a8e}
        .axis{fill:none;stroke:var(--line)}.line{fill:none;stroke:var(--c0);stroke-width:2}code{font-size:.85em}
        .paper{display:none}@page{margin:11mm}@media print{body{font-size:9px;line-height:1.3;margin:0;padding:0;max-width:none}p{margin:.2rem 0}
        section{break-inside:avoid}section:nth-of-type(n+3){display:none}.paper{display:block}h2{margin:.5rem 0 .2rem}h3{margin:.3rem 0 .1rem}
        td,th{padding-top:0;padding-bottom:0;font-size:8px}section>svg{width:75%}.pair svg{width:90%}}
        """
}
