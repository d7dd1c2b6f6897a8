import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// Payloads above 100 bytes are files here.
struct SharedFilesTests {
    private struct WrongRead: Error {}

    private let place: StorePlace

    init() throws { place = try StorePlace() }

    @Test func `tasks put, replace and take large payloads`() async throws {
        let store = try place.open()
        let rows = try store.open(.a, inlineLimit: 100)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for key in Int64(0)..<20 {
                group.addTask {
                    for text in ["a", "b"] { try await rows.put(key, big(text)) }
                    guard key % 2 == 0 else { return }
                    let taken = try await rows.run(.take(.integer(key))).taken
                    #expect(taken?.payload == Data(big("b").utf8))
                }
            }
            try await group.waitForAll()
        }
        for key in Int64(0)..<20 { #expect(try rows.text(key) == (key % 2 == 0 ? nil : big("b"))) }
        try store.close()
        // The files of taken entries are discarded on another thread.
        try await Waiting.until { try place.fileNames() == place.namedFiles() }
    }

    @Test func `a put of a task that is cancelled while it waits leaves no file`() async throws {
        let store = try place.open()
        let rows = try store.open(.a, inlineLimit: 100)
        let (begun, end) = (Locked(false), DispatchSemaphore(value: 0))
        let body = SideThread {
            try store.transaction { _ in
                begun.change { $0 = true }
                end.wait()
            }
        }
        try await Waiting.until { begun.value }
        let put = Task { try await rows.put(1, big("a")) }
        try await Waiting.until { store.waitingCount == 1 }
        put.cancel()
        await #expect(throws: CancellationError.self) { try await put.value }
        end.signal()
        try body.value()
        try store.close()
        #expect(try place.fileNames() == [])
    }

    /// Each value is one byte, repeated as often as the byte says, and both keys always have the same one.
    @Test func `every read during writes without a pause is of whole values`() throws {
        let rows = try place.open().open(.a, inlineLimit: 100)
        @Sendable func value(_ byte: UInt8) -> Data { Data(repeating: byte, count: 101 + 97 * Int(byte)) }
        func put(_ round: Int) throws {
            let payload = value(UInt8(truncatingIfNeeded: round))
            let entries = [1, 2].map { EntryWrite(key: .integer($0), payload: payload, writtenAt: 0) }
            try rows.run(.put(entries))
        }
        let reads: [@Sendable () throws -> [StoredRow]] = [
            { try [rows.row(.integer(1)), rows.row(.integer(2))].compactMap { $0 } },
            {
                let found = try rows.rows([.integer(1), .integer(2)])
                guard found.first?.payload == found.last?.payload else { throw WrongRead() }
                return found
            },
            { try rows.rows().rows },
            { try rows.rows(rows.list(.written), 0..<2).rows },
        ]
        try put(0)
        let (isDone, count) = (Locked(false), Counter())
        defer { isDone.change { $0 = true } }
        let threads = reads.map { read in
            SideThread<Void> {
                while !isDone.value {
                    let found = try read()
                    guard found.count == 2, found.allSatisfy({ $0.payload == value($0.payload.first ?? 0) }) else {
                        throw WrongRead()
                    }
                    count.increment()
                }
            }
        }
        try Waiting.until { count.value >= 8 || threads.contains { $0.result != nil } }
        for round in 1...(LongTests.areEnabled ? 20_000 : 500) { try put(round) }
        isDone.change { $0 = true }
        for thread in threads { try thread.value() }
    }

    // MARK: Files without rows

    @Test(arguments: [false, true])
    func `files without rows are deleted an hour after they were written`(byMaintenance: Bool) throws {
        let first = try place.open()
        try first.open(.a, inlineLimit: 100).put(1, big("a"))
        try first.close()
        let (named, outside) = (try place.fileNames(), place.folder("outside"))
        try Data("outside".utf8).write(to: outside)
        let digits = "0123456789abcdefghij"
        let (young, late, folder) = ("young-" + digits, "late-" + digits, "folder-" + digits)
        let (manager, link) = (FileManager.default, "link-" + digits)
        for name in [digits, "photo-\(digits).jpg", "b-" + digits, young] {
            try Data(count: 200).write(to: place.file(name))
        }
        let tomorrow = Date(timeIntervalSinceNow: 86_400)
        try manager.setAttributes([.modificationDate: tomorrow], ofItemAtPath: place.file(young).path)
        try manager.createDirectory(at: place.file(folder), withIntermediateDirectories: false)
        try manager.createSymbolicLink(atPath: place.file(link).path, withDestinationPath: outside.path)
        try manager.createSymbolicLink(
            atPath: place.file(link + ".2").path, withDestinationPath: place.folder("nothing").path)
        let clock = StoreClock()
        clock.moveAnHourAhead()
        let store = try place.open(clock)
        if byMaintenance { #expect(try store.maintain().orphans == 3) } else { clock.advance(1000) }
        let left = named.union([young, folder, link, link + ".2"])
        #expect(try place.fileNames() == left && named.count == 1)
        // Later passes do not look at the files again.
        try Data(count: 200).write(to: place.file(late))
        let past = Date(timeIntervalSince1970: 1000)
        try manager.setAttributes([.modificationDate: past], ofItemAtPath: place.file(late).path)
        _ = try store.open(.named("b"))
        clock.advance(1000)
        #expect(try place.fileNames() == left.union([late]))
        #expect(try store.maintain().orphans == 1 && place.fileNames() == left)
        #expect(try Data(contentsOf: outside) == Data("outside".utf8))
        #expect(try store.open(.a).text(1) == big("a"))
    }

    /// As HFS+ lists the names of files, which finds a file by either form.
    @Test func `a file whose name is listed in decomposed form belongs to its row`() throws {
        let first = try place.open()
        let entry = EntryWrite(key: .text("caf\u{E9}"), payload: Data(count: 200), writtenAt: 0, label: "caf\u{E9}")
        try first.open(.a, inlineLimit: 100).run(.put([entry]))
        try first.close()
        let name = try #require(try place.fileNames().first)
        let listed = name.decomposedStringWithCanonicalMapping
        #expect(Array(name.utf8) != Array(listed.utf8))
        try FileManager.default.moveItem(at: place.file(name), to: place.file(listed))
        let clock = StoreClock()
        clock.moveAnHourAhead()
        #expect(try place.open(clock).maintain().orphans == 0)
        #expect(FileManager.default.fileExists(atPath: place.file(listed).path))
    }

    /// As a folder has them that takes no notice of case.
    @Test func `the files of keys and labels that differ in case alone have names that differ in more`() throws {
        let rows = try place.open().open(.a, inlineLimit: 100)
        let entries = (0..<50).flatMap { number in
            [("key \(number)", "Label.PNG"), ("KEY \(number)", "label.png")].map { key, label in
                let label = number % 2 == 0 ? label : nil
                return EntryWrite(key: .text(key), payload: Data(count: 200), writtenAt: 0, label: label)
            }
        }
        try rows.run(.put(entries))
        #expect(Set(try place.fileNames().map { $0.lowercased() }).count == 100)
    }

    /// The put has written its file, and waits for a writer that is not in a transaction.
    @Test(arguments: [false, true])
    func `a put that waits while files are swept fails, or its row has its file`(isSweptByOther: Bool) throws {
        let clock = StoreClock()
        clock.moveAnHourAhead()
        let (store, other) = (try place.open(clock), try place.open(clock))
        let rows = try store.open(.a, inlineLimit: 100)
        var last: String?
        for round in 0..<10 {
            let (begun, end) = (Locked(false), DispatchSemaphore(value: 0))
            let first = Change.put([EntryWrite(0, "x")]) { _, _ in
                begun.change { $0 = true }
                end.wait()
            }
            let holding = SideThread { try rows.run(first) }
            try Waiting.until { begun.value }
            let put = SideThread { try rows.put(1, big("\(round)")) }
            try Waiting.until { store.waitingCount == 1 }
            let sweep = SideThread { try (isSweptByOther ? other : store).maintain().orphans }
            if isSweptByOther { #expect(try sweep.value() == 1) }
            end.signal()
            _ = try (holding.value(), sweep.value())
            do {
                try put.value()
                last = big("\(round)")
            } catch {
                #expect((error as? StoreError)?.code == .storageUnavailable, "\(error)")
            }
            #expect(try rows.text(1) == last && (!isSweptByOther || last == nil), "round \(round)")
        }
    }

    @Test func `two stores on one path do their upkeep at once, and each row has its file`() throws {
        let names = ["a", "b"]
        let threads = names.map { name in
            SideThread {
                let clock = StoreClock()
                clock.moveAnHourAhead()
                let store = try place.open(clock)
                let rows = try store.open(.named(name), inlineLimit: 100)
                for round in 0..<12 {
                    if round % 5 == 4 { try rows.run(.clear) }
                    for key in Int64(0)..<8 { try putPatiently(key, big("\(name) \(round) \(key)"), rows) }
                    clock.advance(1000)
                    if round % 3 == 0 { try store.maintain() }
                }
                try store.close()
            }
        }
        for thread in threads { try thread.value() }
        let clock = StoreClock()
        clock.moveAnHourAhead()
        let store = try place.open(clock)
        try store.maintain()
        for name in names {
            let rows = try store.open(.named(name))
            for key in Int64(0)..<8 { #expect(try rows.text(key) == big("\(name) 11 \(key)")) }
        }
        #expect(try place.fileNames() == place.namedFiles() && place.fileNames().count == 16)
        try store.close()
    }

    /// Puts an entry again if another store has swept its file before it had a row.
    private func putPatiently(_ key: Int64, _ text: String, _ rows: CacheRows) throws {
        for attempt in 1... {
            do {
                return try rows.put(key, text)
            } catch let error as StoreError {
                guard error.code == .storageUnavailable, attempt < 100 else { throw error }
            }
        }
    }

    // MARK: Erasing

    /// Texts of 32 bytes that are looked for in all files.
    private enum Mark: String, CaseIterable {
        case inline, large, key, tag, data
        var text: String { String(String(repeating: rawValue + "~", count: 16).prefix(32)) }
    }

    /// Returns an entry with marks, or with other texts of their length.
    private func entry(_ key: Int, _ mark: Mark, times: Int, isMarked: Bool = true) -> EntryWrite {
        func text(_ mark: Mark) -> String { isMarked ? mark.text : String(repeating: "-", count: 32) }
        var meta = RowMeta()
        meta.tags = [text(.tag)]
        meta.extendedData = Data(text(.data).utf8)
        let payload = Data(String(repeating: text(mark), count: times).utf8)
        return EntryWrite(key: .text(text(.key) + "\(key)"), payload: payload, writtenAt: 1000, meta: meta)
    }

    /// Returns whether a file of the store has one of the marks.
    ///
    /// Another process looks: if this one closed a file of the database, its locks would end.
    private func isFound(_ marks: [Mark]) throws -> Bool {
        let words = ["grep", "-rqaF"] + marks.flatMap { ["-e", $0.text] } + [place.folder.url.path]
        let status = try SmallProgram.run(words).status
        try #require(status < 2)
        return status == 0
    }

    enum Neighbour: CaseIterable { case absent, idle, reading }

    @Test(arguments: Neighbour.allCases)
    func `an erase leaves no byte of its entries in any file, and keeps other caches`(neighbour: Neighbour) throws {
        let clock = StoreClock()
        let store = try place.open(clock)
        let (rows, kept) = (try store.open(.a, inlineLimit: 100), try store.open(.named("kept"), inlineLimit: 100))
        let other = try neighbour == .absent ? kept : place.open(clock).open(.named("kept"), inlineLimit: 100)
        try kept.run(.put([EntryWrite(1, "small"), EntryWrite(2, big("k"))]))
        let (isDone, reads) = (Locked(neighbour != .reading), Counter())
        defer { isDone.change { $0 = true } }
        for _ in 0..<20 { _ = try other.text(1) }
        clock.advance(1000)
        let reader = SideThread {
            while !isDone.value {
                _ = try other.text(1)
                reads.increment()
            }
        }
        try Waiting.until { isDone.value || reads.value > 0 || reader.result != nil }
        for round in 0..<4 {
            let operation = Change.put([entry(1, .inline, times: 1), entry(2, .large, times: 20)])
            try rows.run(operation)
            for mark in Mark.allCases where round == 0 { #expect(try isFound([mark]), "\(mark)") }
            // Older bytes are in the main file, in files that wait to be overwritten and in rows of tags.
            try store.maintain()
            for _ in 0..<2 { try rows.run(operation) }
            try rows.erase()
            #expect(try !isFound(Mark.allCases), "round \(round)")
            for cache in [kept, other] { #expect(try cache.text(1) == "small" && cache.text(2) == big("k")) }
            #expect(try rows.totals() == Totals() && kept.totals() == Totals(count: 2, size: 205))
        }
        isDone.change { $0 = true }
        try reader.value()
    }

    @Test func `an erase of many entries leaves none of their bytes in pages that other caches have`() throws {
        let store = try place.open()
        let (rows, kept) = (try store.open(.a), try store.open(.named("kept")))
        var random = Seeded()
        for round in 1...60 {
            for cache in [rows, kept] {
                let entries = (0..<30).map { _ in
                    entry(
                        .random(in: 0..<300, using: &random), .inline, times: .random(in: 1...20, using: &random),
                        isMarked: cache === rows)
                }
                try cache.run(.put(entries))
            }
            let keys = (0..<10).map { _ in Mark.key.text + "\(Int.random(in: 0..<300, using: &random))" }
            try rows.run(.remove(keys.map(StoredKey.text)))
            guard round % 20 == 0 else { continue }
            try rows.erase()
            #expect(try !isFound(Mark.allCases), "round \(round), seed \(random.seed)")
        }
    }

    /// The clear of an erase asks for a pass, which runs on another thread here.
    @Test func `an erase leaves no value file, though a pass deletes the same rows`() throws {
        let store = try Store.open(place.path)
        let rows = try store.open(.a, inlineLimit: 100)
        for round in 0..<12 {
            try rows.run(.put((0..<20).map { EntryWrite($0, big("\($0)")) }))
            try rows.erase()
            #expect(try place.fileNames() == [], "round \(round)")
        }
        try store.close()
    }
}
