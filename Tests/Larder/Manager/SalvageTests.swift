import Foundation
import Larder
import LarderTestSupport
import Testing

/// Damaged stores, and what is left of them after a recovery or a repair.
struct SalvageTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    /// The databases that were set aside.
    private func setAside() throws -> [URL] {
        try folder.names.filter { $0.wholeMatch(of: /store.sqlite.corrupt-[0-9]+-[0-9a-f]{8}/) != nil }.map {
            folder($0)
        }
    }

    private func expectNoRemains() throws {
        #expect(try folder.names.allSatisfy { !$0.contains(".salvage") })
    }

    // case 327
    @Test(arguments: [24, 32, 36, 40, 48, 52, 92, 96], [0, 7, 0x5A5A_5A5A] as [UInt32])
    func `a wrong field of the header costs no entry`(offset: Int, field: UInt32) throws {
        let sample = try SampleStore(at: url, count: 300)
        let bytes = withUnsafeBytes(of: field.bigEndian) { Array($0) }
        try url.overwrite(at: offset, with: bytes)
        let damaged = try Data(contentsOf: url)
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        let report = try manager.verify(repairing: true)
        #expect(report.lost == 0)
        if let original = report.setAside { #expect(try Data(contentsOf: original) == damaged) }
        let (missing, wrong) = try sample.check(manager)
        #expect(missing.isEmpty && wrong.isEmpty, "missing \(missing.count), wrong \(wrong.count)")
        #expect(try manager.verify().problems == [])
        #expect(try manager.fileProblems() == [])
        try manager.close()
        try expectNoRemains()
    }

    // case 327
    @Test(arguments: [36, 52]) func `a wrong count or root page in the header is found and repaired`(offset: Int) throws
    {
        _ = try SampleStore(at: url, count: 300)
        try url.overwrite(at: offset, with: [0, 0, 0x30, 0x39])
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        #expect(try !manager.verify().isHealthy)
        #expect(try setAside() == [])
        let report = try manager.verify(repairing: true)
        #expect(!report.isHealthy && report.lost == 0 && report.entries == 598)
        #expect(try report.setAside?.lastPathComponent == setAside().first?.lastPathComponent)
        #expect(try manager.verify().isHealthy)
    }

    private enum Way: CaseIterable, CustomTestStringConvertible {
        case recovery, repair
        var testDescription: String { self == .recovery ? "automatic recovery" : "repair" }
    }

    // case 328
    @Test(arguments: Way.allCases) private func `a damaged page costs the entries on it and no others`(way: Way) throws
    {
        let sample = try SampleStore(at: url, count: 2000)
        let pages = try sample.entriesByPage()
        #expect(pages.values.reduce(0) { $0 + $1.count } == sample.entries.count)
        let whole = try folder.contents()
        let main = try Data(contentsOf: url)
        var random = Seeded()
        print("salvage: SEED=\(random.seed)")
        // Some leaves of the table of entries, and some of the indexes.
        let indexPages = (2...main.count / 4096).filter { main[($0 - 1) * 4096] == 10 }
        let chosen =
            pages.keys.sorted().shuffled(using: &random).prefix(LongTests.areEnabled ? 12 : 3)
            + indexPages.shuffled(using: &random).prefix(LongTests.areEnabled ? 8 : 2)
        var lostOnce = false
        for page in chosen {
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
            try folder.restore(whole)
            var bytes = main
            let range = (page - 1) * 4096..<page * 4096
            bytes.replaceSubrange(range, with: Data((0..<4096).map { _ in UInt8.random(in: 0...255, using: &random) }))
            try bytes.write(to: url)
            let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
            let comment = Comment(rawValue: "seed \(random.seed), page \(page)")
            var lost: Int?
            if way == .repair { lost = try manager.verify(repairing: true).lost }
            let (missing, wrong) = try sample.check(manager)
            let onPage = pages[page] ?? []
            #expect(wrong.isEmpty, comment)
            #expect(missing == onPage, comment)
            if let lost { #expect(lost == onPage.count, comment) }
            if !onPage.isEmpty {
                lostOnce = true
                let original = try #require(try setAside().first, comment)
                // The file may have become longer since, and have more in it.
                #expect(try Data(contentsOf: original)[range] == bytes[range], comment)
            }
            // Damage that no read has met is found by a look for it.
            if try way == .repair || !setAside().isEmpty { #expect(try manager.verify().problems == [], comment) }
            #expect(try manager.fileProblems(isSwept: true) == [], comment)
            try manager.close()
            try expectNoRemains()
        }
        #expect(lostOnce)
    }

    @Test(arguments: [0xFFFF_FFF0, 0, 3] as [UInt32])
    func `a wrong pointer in an index is a finding, and its repair costs no entry`(pointer: UInt32) throws {
        let sample = try SampleStore(at: url, count: 1000)
        let whole = try folder.contents()
        let main = try Data(contentsOf: url)
        let interior = (2..<main.count / 4096).map { $0 * 4096 }.filter { main[$0] == 2 }
        #expect(!interior.isEmpty)
        for start in interior {
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
            try folder.restore(whole)
            // The last of its pointers, and the first.
            let cell = Int(main[start + 12]) << 8 | Int(main[start + 13])
            for offset in [8, cell] {
                try url.overwrite(at: start + offset, with: withUnsafeBytes(of: pointer.bigEndian) { Data($0) })
            }
            let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
            #expect(try !manager.verify().isHealthy, "page \(start / 4096 + 1)")
            #expect(try setAside() == [], "page \(start / 4096 + 1)")
            let report = try manager.verify(repairing: true)
            #expect(report.setAside != nil, "page \(start / 4096 + 1)")
            let (missing, wrong) = try sample.check(manager)
            #expect(missing.isEmpty && wrong.isEmpty, "page \(start / 4096 + 1): \(missing.count) missing")
            #expect(try manager.verify().problems == [], "page \(start / 4096 + 1)")
            try manager.close()
        }
    }

    @Test(arguments: [0xFFFF_FFF0, 0, 3] as [UInt32])
    func `a wrong pointer in a table may cost entries, and its repair leaves no wrong one and a healthy store`(
        pointer: UInt32
    ) throws {
        let sample = try SampleStore(at: url, count: 1000)
        let whole = try folder.contents()
        let main = try Data(contentsOf: url)
        let interior = (2..<main.count / 4096).map { $0 * 4096 }.filter { main[$0] == 5 }
        #expect(!interior.isEmpty)
        for start in interior {
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
            try folder.restore(whole)
            // The last of its pointers, and the first.
            let cell = Int(main[start + 12]) << 8 | Int(main[start + 13])
            for offset in [8, cell] {
                try url.overwrite(at: start + offset, with: withUnsafeBytes(of: pointer.bigEndian) { Data($0) })
            }
            let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
            _ = try manager.verify(repairing: true)
            let (_, wrong) = try sample.check(manager)
            #expect(wrong.isEmpty, "page \(start / 4096 + 1): \(wrong.count) wrong")
            #expect(try manager.verify().problems == [], "page \(start / 4096 + 1)")
            try manager.close()
        }
    }

    @Test func `the event of a recovery says how much was carried over and lost`() async throws {
        let sample = try SampleStore(at: url, count: 300)
        let pages = try sample.entriesByPage()
        let page = try #require(pages.filter { $0.key > 8 && !$0.value.isEmpty }.keys.min())
        try url.overwrite(at: (page - 1) * 4096, with: Data(repeating: 0x5A, count: 4096))
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        var events = manager.steadyEvents.makeAsyncIterator()
        _ = try sample.check(manager)
        let lost = pages[page]?.count ?? 0
        let event = try #require(await events.next())
        guard case .recovered = event.kind else {
            Issue.record("\(event.kind)")
            return
        }
        #expect(event.message.contains("\(598 - lost) of its entries were carried over, \(lost) were lost"))
    }

    @Test func `under the policy to fail nothing changes, until a repair is asked for`() throws {
        let sample = try SampleStore(at: url, count: 300)
        let pages = try sample.entriesByPage()
        let page = try #require(pages.filter { $0.key > 8 && !$0.value.isEmpty }.keys.min())
        try url.overwrite(at: (page - 1) * 4096, with: Data(repeating: 0x5A, count: 4096))
        let damaged = try Data(contentsOf: url)
        var configuration = SampleStore.configuration
        configuration.recovery = .fail
        let manager = try CacheManager(url: url, configuration: configuration)
        let cache = try SampleStore.cache(manager, "first")
        #expect(throws: CacheError.self) { for key in 0..<300 { _ = try cache.value(forKey: key) } }
        #expect(try !manager.verify().isHealthy)
        // A handle was opened, which may give the file room.
        #expect(try Data(contentsOf: url).prefix(damaged.count) == damaged)
        #expect(try setAside() == [])
        #expect(try manager.verify(repairing: true).lost == pages[page]?.count)
        // The handle that was there before goes on.
        #expect(try (0..<300).count { try cache.value(forKey: $0) != nil } >= 299 - (pages[page]?.count ?? 0))
        #expect(try manager.verify().isHealthy)
    }

    @Test func `entries that were removed or replaced do not come back`() throws {
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        let cache = try SampleStore.cache(manager, "first")
        try cache.setValues((0..<1000).map { ($0, "old \($0)") })
        for key in 0..<500 { try cache.setValue("new \(key)", forKey: key) }
        try cache.removeAll { $0.key % 3 == 0 }
        let other = try SampleStore.cache(manager, "second")
        try other.setValues((0..<1000).map { ($0, "retired \($0)") })
        try other.removeAll()
        try manager.close()
        try url.overwrite(at: 36, with: [0, 0, 0x30, 0x39])
        let again = try CacheManager(url: url, configuration: SampleStore.configuration)
        #expect(try again.verify(repairing: true).setAside != nil)
        let read = try SampleStore.cache(again, "first")
        for key in 0..<1000 {
            let expected = key % 3 == 0 ? nil : key < 500 ? "new \(key)" : "old \(key)"
            #expect(read[key] == expected)
        }
        #expect(try SampleStore.cache(again, "second").count == 0)
    }

    @Test func `what an interrupted salvage left is deleted while the store is in its place`() throws {
        let sample = try SampleStore(at: url, count: 50)
        for ending in [".salvage", ".salvaged"] {
            try Data("unfinished".utf8).write(to: folder("store.sqlite" + ending))
        }
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        #expect(try sample.check(manager).missing.isEmpty)
        try manager.close()
        try expectNoRemains()
    }

    @Test func `a salvaged store whose original has moved takes its place`() throws {
        let sample = try SampleStore(at: url, count: 50)
        try FileManager.default.moveItem(at: url, to: folder("store.sqlite.salvaged"))
        try Data("the log of another".utf8).write(to: folder("store.sqlite-wal"))
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        let (missing, wrong) = try sample.check(manager)
        #expect(missing.isEmpty && wrong.isEmpty)
        #expect(try manager.fileProblems() == [])
        try manager.close()
        try expectNoRemains()
    }

    // MARK: The log

    @Test func `a closed store has no frame in its log`() throws {
        _ = try SampleStore(at: url, count: 300)
        let log = try Data(contentsOf: folder("store.sqlite-wal"))
        #expect(log.allSatisfy { $0 == 0 })
    }

    @Test func `whichever bit of a killed process's log flips, at most one entry is lost, or the log ends there`()
        throws
    {
        let place = try TemporaryFolder()
        let child = try ChildProcess("larder-test-cache", ["leave-log", place("store.sqlite").path])
        #expect(child.line() == "made")
        child.kill()
        let whole = try place.contents()
        let log = try Data(contentsOf: place("store.sqlite-wal"))
        // What is behind the last frame does not count.
        let used = log.count - (log.reversed().firstIndex { $0 != 0 } ?? log.startIndex)
        var random = Seeded()
        print("salvage of logs: SEED=\(random.seed)")
        var bits = (0..<6).map { _ in Int.random(in: 0..<256, using: &random) }
        bits += (0..<30).map { _ in Int.random(in: 256..<log.count * 8, using: &random) }
        #expect(used != 0)
        for bit in bits {
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
            try folder.restore(whole)
            var damaged = log
            damaged[bit / 8] ^= 1 << (bit % 8)
            try damaged.write(to: folder("store.sqlite-wal"))
            let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
            let cache = try SampleStore.cache(manager, "first")
            let values = (0..<200).map { cache[$0] }
            let isNew = values.indices.filter { values[$0] == "second \($0)" }
            if isNew.count < 199 {
                // The log ends before the damage, as after a loss of power: a state that was, with the older values from
                // there on.
                let first = values.indices.first { values[$0] != "second \($0)" } ?? 0
                #expect(isNew == Array(0..<first), "seed \(random.seed), bit \(bit)")
                let rest = values.indices.dropFirst(first)
                #expect(
                    rest.allSatisfy { values[$0] == "first \($0)" } || rest.allSatisfy { values[$0] == nil },
                    "seed \(random.seed), bit \(bit)")
            }
            try manager.close()
        }
    }
}
