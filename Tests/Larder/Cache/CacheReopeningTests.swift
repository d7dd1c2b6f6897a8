import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Writes that find the store moved or damaged, and go on in another one.
struct CacheReopeningTests {
    private let place: StorePlace

    init() throws { place = try StorePlace() }

    private func cache(
        _ manager: CacheManager, options: CacheOptions = CacheOptions().steady
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: options)
    }

    enum Loss: CaseIterable { case moved, damaged }

    enum Form: CaseIterable {
        case set, setMany, remove, take, removeMany, extended, clear, generated, update, updateOther, transaction
    }

    /// Leaves a store whose entries fill some pages, without a log.
    private func fill() throws {
        let manager = try place.manager()
        try cache(manager).setValues((0..<2000).map { ($0, String(repeating: "x", count: 200)) })
        try manager.store().checkpoint()
        try manager.close()
        try place.url.removeLog()
    }

    private func lose(_ loss: Loss) throws {
        switch loss {
        case .moved: try move()
        case .damaged: try place.url.overwritePagesBehindSchema()
        }
    }

    private func move() throws { try FileManager.default.moveItem(at: place.url, to: place.folder("elsewhere")) }

    private func write(_ form: Form, _ cache: Cache<Int, String>) throws {
        switch form {
        case .set: try cache.setValue("new", forKey: 1)
        case .setMany: try cache.setValues([(1, "new"), (2, "new")])
        case .remove: try cache.remove(1)
        case .take: _ = try cache.removeValue(forKey: 1)
        case .removeMany: try cache.removeValues(forKeys: [1, 2])
        case .extended: try cache.setExtendedData(Data([1]), forKey: 1)
        case .clear: try cache.removeAll()
        case .generated: _ = try cache.value(forKey: 5000) { _ in "new" }
        case .update: try cache.update(1) { $0 = "new" }
        case .updateOther:
            try cache.update(1) { _ = $0 }
            try cache.update(3000) { $0 = "new" }
        case .transaction:
            try cache.manager.transaction { transaction in
                _ = try transaction.value(forKey: 2, in: cache)
                try transaction.setValue("new", forKey: 1, in: cache)
            }
        }
    }

    /// Writes on a thread of its own, and fails if that does not end.
    ///
    /// The write that finds the files moved may fail, and the next one does not.
    private func expectEnd(_ form: Form, _ cache: Cache<Int, String>) throws {
        let thread = SideThread {
            do {
                try write(form, cache)
            } catch let error as CacheError where error.code == .storageUnavailable {
                try write(form, cache)
            }
        }
        try Waiting.until { thread.result != nil }
        try thread.value()
    }

    /// Something that is done the first time that it is asked for.
    private final class Once: Sendable {
        private let body = Locked<(@Sendable () throws -> Void)?>(nil)
        let outcomes = Told<String>()

        func set(_ new: @escaping @Sendable () throws -> Void) { body.change { $0 = new } }

        func run() {
            let next = body.change { body in
                defer { body = nil }
                return body
            }
            guard let next else { return }
            do {
                try next()
                outcomes.add("done")
            } catch {
                outcomes.add("\(error)")
            }
        }
    }

    /// Ways of writing that meet any damage at all.
    private static let ways = Loss.allCases.flatMap { loss in
        Form.allCases.filter { loss == .moved || $0 != .clear }.map { (loss, $0) }
    }

    @Test(arguments: ways)
    func `a log that is told of it may write to the new store`(loss: Loss, form: Form) throws {
        try fill()
        let told = Once()
        let manager = try place.manager { $0.log = { _ in told.run() } }
        let cache = try cache(manager)
        told.set {
            try cache.setValue("told", forKey: -1)
            try cache.update(-2) { $0 = "told" }
        }
        try lose(loss)
        try expectEnd(form, cache)
        #expect(told.outcomes.all == ["done"])
        #expect(try cache.values(forKeys: [-1, -2]) == [-1: "told", -2: "told"])
        if [.set, .setMany, .update, .transaction].contains(form) { #expect(try cache.value(forKey: 1) == "new") }
        try expectInvariants(cache)
    }

    /// A value that does something when it goes.
    private final class Ending: Sendable {
        private let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test(arguments: ways)
    func `a value that leaves memory because of it may write to the new store in its deinit`(
        loss: Loss, form: Form
    ) throws {
        try fill()
        let manager = try place.manager()
        let cache = try cache(manager)
        let codec = ValueCodec<Ending>(identifier: "ending", encode: { _ in Data([1]) }, decode: { _ in Ending({}) })
        let endings: Cache<Int, Ending> = try manager.cache(
            named: "endings", version: "1", maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
        let ended = Once()
        endings[1] = Ending { ended.run() }
        try manager.store().checkpoint()
        ended.set { try cache.setValue("ended", forKey: -1) }
        try lose(loss)
        try expectEnd(form, cache)
        #expect(ended.outcomes.all == ["done"])
        #expect(try cache.value(forKey: -1) == "ended")
        try expectInvariants(cache)
    }

    @Test(arguments: Loss.allCases)
    func `a task's write is told of as well, to a log and, if something was lost, to who reads the events`(
        loss: Loss
    ) async throws {
        try fill()
        let told = Once()
        let manager = try place.manager { $0.log = { _ in told.run() } }
        let cache = try cache(manager)
        told.set { try cache.setValue("told", forKey: -1) }
        let events = manager.events
        let isRead = Counter()
        let reader = Task {
            for await event in events {
                guard case .recovered = event.kind else { continue }
                try await cache.setValue("read", forKey: -2)
                return isRead.increment()
            }
            return 0
        }
        try lose(loss)
        let isWritten = Counter()
        let writer = Task {
            do throws(CacheError) {
                try await cache.setValue("new", forKey: 1)
            } catch {
                #expect(error.code == .storageUnavailable)
                try await cache.setValue("new", forKey: 1)
            }
            isWritten.increment()
        }
        try await Waiting.until { isWritten.value == 1 && !told.outcomes.all.isEmpty }
        try await writer.value
        #expect(told.outcomes.all == ["done"])
        #expect(try await cache.values(forKeys: [1, -1]) == [1: "new", -1: "told"])
        if loss == .damaged {
            try await Waiting.until { isRead.value == 1 }
            #expect(try await cache.value(forKey: -2) == "read")
        }
        reader.cancel()
        _ = try await reader.value
    }

    // MARK: - What memory learns, and when

    @Test func `a value that an opening lets go of may open a sub-cache in its deinit`() throws {
        let manager = try place.manager()
        let codec = ValueCodec<Ending>(identifier: "ending", encode: { _ in Data([1]) }, decode: { _ in Ending({}) })
        @Sendable func endings(_ version: CacheVersion) throws -> Cache<Int, Ending> {
            try manager.cache(
                named: "endings", version: version, maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
        }
        let ended = Once()
        let old = try endings("1")
        old[1] = Ending { ended.run() }
        ended.set { _ = try manager.cache(named: "other", version: "1", maxAge: .hours(1)) as Cache<Int, String> }
        let thread = SideThread { try endings("2").count }
        try Waiting.until { thread.result != nil }
        #expect(try thread.value() == 0)
        #expect(ended.outcomes.all == ["done"])
        #expect(old[1] == nil)
    }

    @Test func `a sub-cache that finds the store replaced when it is opened follows the new one's commits`() throws {
        let other = try CacheManager(url: place.folder("next"), configuration: place.time.configuration)
        try cache(other).setValue("new", forKey: 1)
        try other.close()

        let writer = try place.manager()
        try cache(writer).setValue("old", forKey: 1)
        let reader = try place.manager { $0.access = .readOnly }
        try moveStore(place.url, to: place.folder("elsewhere"))
        try moveStore(place.folder("next"), to: place.url)
        let cache = try cache(reader)
        #expect(cache[1] == "new")
        #expect(cache[1] == "new")
        var shell = try Intruder(place.url)
        try shell.execute("DELETE FROM entry")
        #expect(cache[1] == nil)
        withExtendedLifetime(writer) {}
    }

    private func moveStore(_ url: URL, to new: URL) throws {
        for ending in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: url.path + ending) {
            try FileManager.default.moveItem(atPath: url.path + ending, toPath: new.path + ending)
        }
    }

    @Test func `what was known of a store says nothing of the one that took its place`() throws {
        let other = try CacheManager(url: place.folder("next"), configuration: place.time.configuration)
        try cache(other).setValue("new", forKey: 1)
        try other.close()

        let manager = try place.manager()
        let cache = try cache(manager)
        cache[1] = "old"
        var shell = try Intruder(place.url)
        for number in 0..<20 {
            try shell.change("UPDATE entry SET is_pinned = \(number % 2) WHERE key = 1")
            #expect(cache[1] == "old")
        }
        try moveStore(place.url, to: place.folder("elsewhere"))
        try moveStore(place.folder("next"), to: place.url)
        // Says that somebody has committed, to those who know the old one.
        try shell.change("UPDATE entry SET is_pinned = 0 WHERE key = 1")
        let reader = SideThread { (0..<3).map { _ in cache[1] } }
        try Waiting.until { reader.result != nil }
        #expect(try reader.value() == ["new", "new", "new"])
        #expect(cache.memory.contains(1))
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `the log is copied only when memory knows what was written`(isTransaction: Bool) throws {
        let counts = Told<Int>()
        let home = Locked<Cache<Int, String>?>(nil)
        let time = place.time
        let manager = try place.manager { configuration in
            configuration.wake = { delay, action in
                // What is to be done at once is the copying.
                if delay == .zero, let cache = home.value { counts.add(cache.memory.count) }
                return time.wake(after: delay, action)
            }
        }
        let cache = try cache(manager, options: CacheOptions(inlineLimit: .max).steady)
        home.change { $0 = cache }
        defer { home.change { $0 = nil } }
        let text = String(repeating: "x", count: 2 * Database.checkpointPages * Connection.pageSize)
        if isTransaction {
            try manager.transaction { try $0.setValue(text, forKey: 1, in: cache) }
        } else {
            cache[1] = text
        }
        #expect(counts.all == [1])
    }
}
