import Foundation
import LarderStore
import LarderTestSupport

extension RowsProgram {
    /// Takes steps on a small disk, a word or two each, and prints the result of each.
    ///
    /// Without steps it opens a store in what is left of the disk, page by page, and again with room.
    static func disk(_ arguments: [String]) throws {
        guard let folder = arguments.first else { exit(2) }
        if arguments.count == 1 { return try FullDisk.openWithLittleRoom(folder) }
        let disk = try FullDisk(folder)
        for step in arguments.dropFirst() {
            let words = step.split(separator: " ").map(String.init)
            print(try disk.take(words[0], words.count > 1 ? words[1] : ""))
            fflush(nil)
        }
    }
}

/// The result of a call that throws nothing.
let done = "done"

func outcome(_ body: () throws -> Void) -> String {
    do {
        try body()
        return done
    } catch {
        return (error as? StoreError).map { "\($0.code)" } ?? "\(error)"
    }
}

/// Takes all room of a disk for a file, as another program would.
private func eat(_ path: String) {
    let (file, zeros) = (open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600), [UInt8](repeating: 0, count: 1 << 16))
    while write(file, zeros, zeros.count) > 0 {}
    close(file)
}

/// A disk with a store, on which time stands.
private final class FullDisk {
    private let folder: String
    private let now = Locked<Int64>(1_000_000)
    private var store: Store
    private var second: Store?
    private var caches: [String: KnownCache] = [:]
    private var current = ""
    private var lastSize = 0

    init(_ folder: String) throws {
        self.folder = folder
        store = try FullDisk.openStore(folder, now)
    }

    private static func openStore(_ folder: String, _ now: Locked<Int64>) throws -> Store {
        var options = Store.Options()
        options.busyTimeout = 60_000
        options.time = StoreTime(now: { now.value }, wake: { _, _ in {} })
        return try Store.open(folder + "/store.sqlite", options)
    }

    /// Opens a handle on a cache, which later steps use.
    private func use(_ name: String, in store: Store, evicts: Bool) throws {
        let declaration = CacheDeclaration(
            name: name, version: "1", codec: "data", ageRule: name == "expiring" ? .sinceWrite(1000) : .unlimited)
        let rows = try store.open(declaration, inlineLimit: 5000, evictsOnFullDisk: evicts)
        let cache = caches[name] ?? KnownCache(rows)
        cache.rows = rows
        rows.attach(cache.removals)
        (caches[name], current) = (cache, name)
    }

    /// Puts new entries, each in a request of its own, and returns the kinds of results.
    private func add(_ count: Int64, to cache: KnownCache, _ then: (Int64) -> Void = { _ in }) -> String {
        let removed = cache.removals.causes.value.count
        var results: Set<String> = []
        for key in cache.newKeys(count) {
            results.insert(cache.put([cache.entry(key, at: now.value)], [key]))
            then(key)
        }
        let isRemoving = cache.removals.causes.value.count > removed
        return results.sorted().joined(separator: " ") + (isRemoving ? " removing" : "")
    }

    /// Puts new entries in one request, which have to be kept.
    private func keep(_ count: Int64, in cache: KnownCache, pinned: Bool = false, end: Int64? = nil) -> String {
        let keys = cache.newKeys(count)
        cache.kept += keys
        return cache.put(keys.map { cache.entry($0, at: now.value, pinned: pinned, end: end) }, keys)
    }

    func take(_ verb: String, _ word: String) throws -> String {
        let count = Int64(word) ?? 1
        if verb == "evict" || verb == "refuse" {
            try use(word, in: store, evicts: verb == "evict")
            return "opened"
        }
        guard let cache = caches[current] else { return "no cache" }
        switch verb {
        case "reopen":
            try store.close()
            // The close may have freed some room.
            if word == "eaten" { eat(folder + "/eaten") }
            store = try Self.openStore(folder, now)
            try use(current, in: store, evicts: false)
        case "second":
            let opened = try second ?? Self.openStore(folder, now)
            second = opened
            try use(current, in: opened, evicts: false)
        case "add": return add(count, to: cache)
        case "pin": return keep(count, in: cache, pinned: true)
        case "keep": return keep(count, in: cache, end: Int64.max)
        case "put":
            let keys = cache.newKeys(count)
            return cache.put(keys.map { cache.entry($0, at: now.value) }, keys)
        case "replace":
            let keys = cache.keys.suffix(Int(count))
            return Set(keys.map { cache.put([cache.entry($0, 2, at: now.value)], [$0], 2) }).sorted().joined()
        case "fill":
            for _ in 0..<20_000 {
                let result = try take("put", word)
                if result != done { return result }
            }
        case "overfill": while cache.removals.causes.value.isEmpty { if add(1, to: cache).contains("Full") { break } }
        case "access":
            for key in cache.oldest(count) {
                guard let header = try cache.rows.header(StoredKey.integer(key)) else { continue }
                cache.rows.noteAccess(to: header.summary, at: now.value)
                cache.kept.append(key)
            }
        case "remove": return cache.forget(cache.oldest(count)) { _ = try cache.rows.run($0) }
        case "bodyremove":
            return cache.forget(cache.oldest(count)) { operation in
                try store.transaction { _ = try $0.perform(operation, on: cache.rows) }
            }
        case "clear": return cache.forget(cache.keys) { _ in _ = try cache.rows.run(.clear) }
        // In the place of upkeep, which nothing wakes here.
        case "reclaim": while try !store.transaction({ try $0.reclaim(atMost: 500).isDone }) {}
        case "maintain": return outcome { _ = try (word == "second" ? second ?? store : store).maintain() }
        case "advance": now.change { $0 += count }
        case "eat": eat(folder + "/eaten")
        case "free": try FileManager.default.removeItem(atPath: folder + "/" + word)
        case "feed": return add(count, to: cache) { if $0 % 5 == 0 { eat(folder + "/eaten") } }
        case "race": return try race(count, cache)
        case "body": return body(cache)
        case "batch": return try batch(cache)
        case "contend": return try contend(Int(count), cache)
        default: return try look(verb, count, cache)
        }
        return done
    }

    /// Looks at what is there, and changes nothing.
    private func look(_ verb: String, _ count: Int64, _ cache: KnownCache) throws -> String {
        switch verb {
        case "check":
            let problems = try caches.values.flatMap { try $0.problems() } + store.verify().problems
            return problems.isEmpty ? "sound" : problems.prefix(5).joined(separator: ", ")
        case "kept": return "\(Set(cache.kept).isSubset(of: cache.keys))"
        case "newest": return "\(Set(cache.next - count..<cache.next).isSubset(of: cache.keys))"
        case "removed": return "\(cache.removals.causes.value.count >= count)"
        case "causes": return Set(cache.removals.causes.value.values).sorted().joined(separator: " ")
        case "left": return try "\(cache.rows.totals().count)"
        case "ballast": return "\(FileManager.default.fileExists(atPath: folder + "/store.sqlite.ballast"))"
        case "grown":
            let (size, last) = try (URL(fileURLWithPath: folder + "/store.sqlite").fileSize(), lastSize)
            lastSize = size
            return "\(size > last)"
        case "orphans":
            try store.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: folder + "/store.files")
            return "\(names.count - cache.keys.count)"
        default: return "no step"
        }
    }
}

extension FullDisk {
    /// Puts entries while another thread takes all room; returns the failures for other reasons than a full disk.
    private func race(_ count: Int64, _ cache: KnownCache) throws -> String {
        let (isDone, path, expected) = (Locked(false), folder + "/eaten", ["done", "removing", "storageFull"])
        let eater = SideThread { while !isDone.value { eat(path) } }
        let results = add(count, to: cache)
        isDone.change { $0 = true }
        try eater.value()
        return results.split(separator: " ").filter { !expected.contains(String($0)) }.joined(separator: " ")
    }

    /// Runs a body that removes an entry and puts two hundred; returns what it throws and how often it ran.
    private func body(_ cache: KnownCache) -> String {
        var runs = 0
        let (keys, moment) = (cache.newKeys(200), now.value)
        let result = outcome {
            try store.transaction { state in
                runs += 1
                _ = try state.perform(.remove([.integer(cache.keys[0])]), on: cache.rows)
                _ = try state.perform(.put(keys.map { cache.entry($0, at: moment) }), on: cache.rows)
            }
        }
        return "\(result) \(runs)"
    }

    /// Puts more than the ballast and a small entry in one batch.
    private func batch(_ cache: KnownCache) throws -> String {
        let (store, rows, begun) = (self.store, cache.rows, Locked(false))
        let body = SideThread {
            try store.transaction { _ in
                begun.change { $0 = true }
                try Waiting.until { store.waitingCount == 2 }
            }
        }
        try Waiting.until { begun.value }
        let large = (Int64(1)...1000).map { EntryWrite(key: .integer(-$0), payload: Data(count: 4500), writtenAt: 0) }
        let (keys, moment) = (cache.newKeys(1), now.value)
        let small = keys.map { cache.entry($0, at: moment) }
        let first = SideThread { outcome { _ = try rows.run(.put(large)) } }
        try Waiting.until { store.waitingCount == 1 }
        let last = SideThread { outcome { _ = try rows.run(.put(small)) } }
        try body.value()
        let results = try (first.value(), last.value())
        if results.1 == done { cache.note(keys) }
        return "\(results.0) \(results.1)"
    }

    /// Puts entries by two stores at once; returns the failures for other reasons than a full disk.
    private func contend(_ count: Int, _ cache: KnownCache) throws -> String {
        let (first, name) = (cache.rows, current)
        let second = try Self.openStore(folder, now)
        try use(name, in: second, evicts: true)
        let lists = (0..<2).map { _ in cache.newKeys(Int64(count)) }
        let threads = zip([first, cache.rows], lists).map { rows, keys in
            let entries = keys.map { cache.entry($0, at: now.value) }
            return SideThread<[String]> {
                entries.map { entry in outcome { _ = try rows.run(.put([entry])) } }
            }
        }
        var failures: Set<String> = []
        for (thread, keys) in zip(threads, lists) {
            for (key, result) in zip(keys, try thread.value()) where result == done { cache.note([key]) }
            failures.formUnion(try thread.value())
        }
        cache.rows = first
        try second.close()
        return failures.subtracting([done, "storageFull"]).sorted().joined(separator: " ")
    }

    fileprivate static func openWithLittleRoom(_ folder: String) throws {
        var (results, wrong): ([String], [String]) = ([], [])
        for pages in 0...40 {
            let (place, food) = (folder + "/\(pages)", URL(fileURLWithPath: folder + "/eaten"))
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
            eat(food.path)
            try food.cut(to: food.fileSize() - pages * 4096)
            results.append(
                outcome {
                    let disk = try FullDisk(place)
                    defer { _ = outcome { try disk.store.close() } }
                    try disk.use("small", in: disk.store, evicts: false)
                    let entry = EntryWrite(key: .integer(0), payload: Data(), writtenAt: 0)
                    _ = try disk.caches["small"]?.rows.run(.put([entry]))
                })
            try FileManager.default.removeItem(at: food)
            let disk = try FullDisk(place)
            let steps = [
                ("refuse", "small", "opened"), ("put", "1", done), ("add", "99", done), ("check", "", "sound"),
            ]
            for (verb, word, expected) in steps {
                let result = try disk.take(verb, word)
                if result != expected { wrong.append("\(pages) \(verb) \(result)") }
            }
            try disk.store.close()
            try FileManager.default.removeItem(atPath: place)
        }
        print("none", results[0], "enough", results[40], "all", Set(results).sorted(), "wrong", wrong)
    }
}
