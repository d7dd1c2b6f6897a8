import Larder
import LarderLocks
import LarderStore
import LarderTestSupport
import Testing

/// A cache as far as observation sees one.
private final class Observed: Sendable {
    let hub = ChangeHub<Int, String>()
    let time = ManualClock()
    let readings = Counter()
    private let values = Mutex<[Int: String]?>([:])

    subscript(key: Int) -> String? {
        get { values.withLock { $0?[key] } }
        set {
            let wasThere = values.withLock { values in
                defer { values?[key] = newValue }
                return values?[key] != nil
            }
            tell { if newValue != nil { hub.noteUpdated([key], &$0) } else if wasThere { hub.noteRemoved([key], &$0) } }
        }
    }

    func set(_ keys: Range<Int>) {
        values.withLock { values in for key in keys { values?[key] = "\(key)" } }
        tell { hub.noteUpdated(keys, &$0) }
    }

    func remove(_ keys: Range<Int>) {
        let gone = values.withLock { values in keys.filter { values?.removeValue(forKey: $0) != nil } }
        tell { hub.noteRemoved(gone, &$0) }
    }

    func close() {
        values.withLock { $0 = nil }
        for stream in hub.streams { stream.finish() }
    }

    func tell(_ change: (inout Deferred) -> Void) {
        var deferred = Deferred()
        change(&deferred)
    }

    func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Int, String>> {
        hub.changes(every: interval, timekeeper: time.timekeeper) { [self] keys in
            readings.increment()
            return values.withLock { values in values.map { all in all.filter { keys.contains($0.key) } } }
        }
    }

    func endInterval() { time.advance(by: .milliseconds(100)) }
}

extension ChangeHub {
    /// Notes changes as a commit does: they are due once what they displace is released.
    fileprivate func tell(_ changes: (inout Deferred) -> Void) {
        var deferred = Deferred()
        changes(&deferred)
    }
}

struct ChangeStreamTests {
    private typealias Changes = CacheChanges<Int, String>
    private let cache = Observed()

    @Test func `the stream of a key reads nothing and has no timer between a suspension and the reset after it`()
        async throws
    {
        let (time, hub, reads) = (ManualClock(), ChangeHub<Int, String>(), Counter())
        let stream = hub.changes(of: 1, every: .milliseconds(100), timekeeper: time.timekeeper) {
            () async throws(CacheError) -> (value: String?, row: RowVersion?) in
            if reads.increment() == 1 { throw CacheError(.suspended, "The manager is suspended.") }
            return ("a", nil)
        }
        let reader = Task {
            var values = stream.makeAsyncIterator()
            return await values.next()
        }
        try await Waiting.until { hub.streams.allSatisfy { $0.waitingCount == 1 } }
        #expect(reads.value == 1 && time.pendingCount == 0)
        hub.tell { hub.noteReset(&$0) }
        time.advance(by: .milliseconds(100))
        #expect(await reader.value == "a")
        #expect(reads.value == 2)
    }

    @Test func `the first change is sent at once, and what changes after it is one batch at the end of the interval`()
        async throws
    {
        let batches = Told<Changes>()
        let stream = cache.changes()
        let reader = Task { for await batch in stream { batches.add(batch) } }
        cache[1] = "one"
        try await Waiting.until { batches.all.count == 1 && cache.time.pendingCount == 1 }
        cache[2] = "two"
        cache[3] = "three"
        cache.endInterval()
        try await Waiting.until { batches.all.count == 2 }
        #expect(batches.all.map { $0.updated.count } == [1, 2])
        // The interval that the second batch has begun ends, and the next change is the first one again.
        try await Waiting.until { cache.time.pendingCount == 1 }
        cache.endInterval()
        cache[4] = "four"
        try await Waiting.until { batches.all.count == 3 }
        reader.cancel()
    }

    @Test func `a read that fails is repeated after an interval, or with the next change`() async throws {
        let (time, hub, reads) = (ManualClock(), ChangeHub<Int, String>(), Counter())
        let stream = hub.changes(of: 1, every: .milliseconds(100), timekeeper: time.timekeeper) {
            () async throws(CacheError) -> (value: String?, row: RowVersion?) in
            if reads.increment() < 3 { throw CacheError(.undecodable, "It does not decode.") }
            return ("a", nil)
        }
        let reader = Task {
            var values = stream.makeAsyncIterator()
            return await values.next()
        }
        try await Waiting.until { reads.value == 1 && time.pendingCount == 1 }
        time.advance(by: .milliseconds(1))
        try await Waiting.until { reads.value == 2 && time.pendingCount == 1 }
        // Time stands still, and the key gets another value.
        hub.tell { hub.noteUpdated([1], &$0) }
        #expect(await reader.value == "a")
    }

    @Test func `what changed in one interval is one batch`() async {
        var changes = cache.changes().makeAsyncIterator()
        cache[0] = "first"
        #expect(await changes.next()?.updated == [0: "first"])
        cache.set(1..<3)
        cache[3] = "three"
        cache.endInterval()
        #expect(
            await changes.next() == Changes(updated: [1: "1", 2: "2", 3: "three"], removed: [], isReset: false))
    }

    @Test func `bulk and single removals are listed, and a clear says to read again`() async {
        cache.set(0..<6)
        var changes = cache.changes().makeAsyncIterator()
        cache.remove(0..<4)
        cache[5] = nil
        cache.endInterval()
        #expect(await changes.next() == Changes(updated: [:], removed: [0, 1, 2, 3, 5], isReset: false))
        cache[6] = "six"
        cache.tell { cache.hub.noteReset(&$0) }
        cache.endInterval()
        #expect(await changes.next() == Changes(updated: [:], removed: [], isReset: true))
    }

    @Test func `a batch is the net of its interval`() async {
        cache.set(1..<3)
        var changes = cache.changes().makeAsyncIterator()
        cache[0] = "first"
        #expect(await changes.next()?.updated == [0: "first"])
        for value in [nil, "one", nil] { cache[1] = value }
        for value in [nil, "two", "II"] { cache[2] = value }
        for value in ["three", nil] { cache[3] = value }
        cache.endInterval()
        #expect(await changes.next() == Changes(updated: [2: "II"], removed: [1, 3], isReset: false))
    }

    @Test func `no change, no timer and nothing sent`() async {
        var changes = cache.changes().makeAsyncIterator()
        cache[1] = nil
        cache.remove(1..<100)
        #expect(cache.time.pendingCount == 0)
        cache[1] = "one"
        cache[2] = "two"
        #expect(cache.time.pendingCount == 0)
        #expect(await changes.next()?.updated.count == 2)
        // An interval begins with a batch, and nothing follows it if nothing changes.
        #expect(cache.time.pendingCount == 1)
        cache.endInterval()
        #expect(cache.time.pendingCount == 0)
        // Were there another batch, it would come before this one.
        cache[3] = "three"
        #expect(await changes.next() == Changes(updated: [3: "three"], removed: [], isReset: false))
    }

    @Test func `a stream of a key sends no row twice, and reads again after each reset`() async throws {
        let row = Mutex((value: "a", revision: Int64(1)))
        let values = cache.hub.changes(of: 1, every: .zero, timekeeper: cache.time.timekeeper) {
            [cache] () async throws(CacheError) in
            cache.readings.increment()
            return row.withLock { ($0.value, RowVersion(id: 1, revision: $0.revision)) }
        }
        let sent = Mutex<[String?]>([])
        let reader = Task { for await value in values { sent.withLock { $0.append(value) } } }
        for count in 1..<4 {
            try await Waiting.until { cache.readings.value == count }
            cache.tell { cache.hub.noteReset(&$0) }
            cache.time.advance(by: .milliseconds(1))
        }
        try await Waiting.until { cache.readings.value == 4 }
        row.withLock { $0 = ("b", 2) }
        cache.tell { cache.hub.noteUpdated([1], &$0) }
        cache.time.advance(by: .milliseconds(1))
        try await Waiting.until { sent.withLock { $0.count } == 2 }
        #expect(sent.withLock { $0 } == ["a", "b"])
        reader.cancel()
    }

    @Test func `observation is off until a stream is made, and again when it is gone`() {
        #expect(!cache.hub.isObserved)
        var stream = Optional(cache.changes())
        var another = Optional(cache.changes())
        cache[1] = "one"
        #expect(cache.hub.isObserved)
        stream = nil
        #expect(cache.hub.isObserved)
        another = nil
        #expect(!cache.hub.isObserved)
        #expect(stream == nil && another == nil)
        cache[1] = "two"
        cache.endInterval()
        #expect(cache.time.pendingCount == 0 && cache.readings.value == 0)
    }

    @Test func `what changed before a stream was made is not its affair`() async {
        cache[1] = "one"
        var changes = cache.changes().makeAsyncIterator()
        cache[2] = "two"
        cache.endInterval()
        #expect(await changes.next()?.updated == [2: "two"])
    }

    @Test func `a batch arrives by the system's time, without a main run loop`() async {
        let hub = ChangeHub<Int, Int>()
        var changes = hub.changes(every: .milliseconds(1), timekeeper: .system) { keys in
            [Int: Int](uniqueKeysWithValues: keys.map { ($0, $0) })
        }.makeAsyncIterator()
        hub.tell { hub.noteUpdated([1], &$0) }
        #expect(await changes.next()?.updated == [1: 1])
    }

    @Test func `a slow reader delays nobody, and finds one batch with the values of now`() async {
        var changes = cache.changes().makeAsyncIterator()
        for round in 0..<50 {
            for key in 0..<100 { cache[key] = "\(key) \(round)" }
            cache.endInterval()
        }
        cache[7] = nil
        #expect(cache.readings.value == 0 && cache.time.pendingCount == 0)
        let batch = await changes.next()
        #expect(batch?.updated.count == 99 && batch?.updated[8] == "8 49" && batch?.removed == [7])
        #expect(cache.readings.value == 1)
    }

    @Test func `more than ten thousand keys are a reset`() async {
        var changes = cache.changes().makeAsyncIterator()
        cache.set(0..<10_001)
        cache.endInterval()
        #expect(await changes.next() == Changes(updated: [:], removed: [], isReset: true))
        #expect(cache.readings.value == 0)
        cache.set(0..<10_000)
        cache.endInterval()
        #expect(await changes.next()?.updated.count == 10_000)
    }

    @Test func `what has gone without a word by the time of reading is removed`() async {
        let hub = ChangeHub<Int, String>()
        let time = ManualClock()
        var changes = hub.changes(every: .seconds(1), timekeeper: time.timekeeper) { _ in [2: "two", 9: "not asked"] }
            .makeAsyncIterator()
        hub.tell {
            hub.noteUpdated([1, 2], &$0)
            hub.noteRemoved([3], &$0)
        }
        time.advance(by: .seconds(1))
        #expect(await changes.next() == Changes(updated: [2: "two"], removed: [1, 3], isReset: false))
    }

    @Test func `every stream has its own interval`() async {
        var quick = cache.changes(every: .milliseconds(10)).makeAsyncIterator()
        var slow = cache.changes(every: .seconds(1)).makeAsyncIterator()
        cache[1] = "one"
        cache.time.advance(by: .milliseconds(10))
        #expect(await quick.next()?.updated == [1: "one"])
        cache[1] = "two"
        cache[2] = "two"
        cache.time.advance(by: .seconds(1))
        #expect(await quick.next()?.updated == [1: "two", 2: "two"])
        #expect(await slow.next()?.updated == [1: "two", 2: "two"])
    }

    @Test(arguments: [Duration.zero, .seconds(-5), .seconds(Int64.min)])
    func `without an interval a batch is due at once, and nothing spins`(interval: Duration) async {
        var changes = cache.changes(every: interval).makeAsyncIterator()
        cache[1] = "one"
        cache[2] = "two"
        #expect(cache.time.pendingCount == 0)
        #expect(await changes.next()?.updated == [1: "one", 2: "two"])
        cache[2] = nil
        #expect(await changes.next()?.removed == [2])
    }

    @Test func `an interval beyond all bounds is only long`() {
        let hub = ChangeHub<Int, Int>()
        let stream = hub.changes(every: .seconds(Int64.max), timekeeper: .system) { _ in [:] }
        hub.tell { hub.noteUpdated([1], &$0) }
        withExtendedLifetime(stream) {}
    }

    @Test func `a cancelled reader is let go, and its stream is over`() async {
        let cache = cache
        let stream = cache.changes()
        let reader = Task {
            var count = 0
            for await _ in stream { count += 1 }
            return count
        }
        cache[1] = "one"
        reader.cancel()
        #expect(await reader.value == 0)
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == nil)
    }

    @Test func `a reader that waits is woken by what comes`() async {
        let cache = cache
        let stream = cache.changes()
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let reader = Task {
            start.yield()
            var changes = stream.makeAsyncIterator()
            return await changes.next()
        }
        for await _ in started { break }
        cache[1] = "one"
        cache.endInterval()
        #expect(await reader.value?.updated == [1: "one"])
    }

    @Test func `at the end what is pending may still be taken, and if its values cannot be read it is a reset`() async {
        var changes = cache.changes().makeAsyncIterator()
        var idle = cache.changes().makeAsyncIterator()
        cache[1] = "one"
        cache.endInterval()
        #expect(await idle.next()?.updated == [1: "one"])
        cache.close()
        #expect(await changes.next() == Changes(updated: [:], removed: [], isReset: true))
        #expect(await changes.next() == nil)
        #expect(await idle.next() == nil)
        #expect(cache.time.pendingCount == 0)
    }
}
