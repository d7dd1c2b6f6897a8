import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values that are loaded because they are missing, by each form of the call.
struct GenerationTests {
    private let bench: Workbench

    init() throws { bench = try Workbench() }

    @Test(arguments: LoadForm.allCases)
    func `a missing value is loaded once, stored and returned`(form: LoadForm) async throws {
        let cache = try bench.numbers()
        #expect(try await form.load("loaded", in: cache) == "loaded")
        #expect(cache[1] == "loaded" && cache.memory[1] == "loaded")
        for isInMemory in [true, false] {
            if !isInMemory { cache.memory.removeAll() }
            let begun = LoadGate()
            #expect(try await form.load("again", in: cache, begun: begun) == "loaded")
            #expect(!begun.isOpen)
        }
        #expect(await cache.memory.contains(1))
        #expect(cache.statistics.writes == 1 && cache.statistics.failures == 0)
        #expect(!cache.isGenerating && cache.waitingCallers == 0)
        try expectInvariants(cache)
    }

    @Test func `a closure that does not suspend may be given to an asynchronous call`() async throws {
        let cache = try bench.numbers()
        #expect(try await cache.value(forKey: 1) { "loaded \($0)" } == "loaded 1")
        #expect(try await cache.entry(forKey: 2) { key, _ in .value("loaded \(key)") }.value == "loaded 2")
        #expect(try await cache.value(forKey: 3) { key, _ in .value("loaded \(key)") } == "loaded 3")
        let many = try await cache.values(forKeys: [4, 5]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, "loaded \($0)") })
        }
        #expect(many == [4: "loaded 4", 5: "loaded 5"])
        let generator = cache.generator { "loaded \($0)" }
        #expect(try await generator(6) == "loaded 6")
        #expect(Array(cache.keys) == Array(1...6))
    }

    @Test func `an error of the closure is thrown as it is and not stored, and the next call tries again`() async throws
    {
        let cache = try bench.numbers()
        func loadOnThisThread() {
            #expect(throws: Offline.self) { try cache.value(forKey: 1) { _ in throw Offline() } }
            #expect(throws: Offline.self) { try cache.values(forKeys: [1, 2]) { _ in throw Offline() } }
            #expect(throws: Offline.self) { try cache.entry(forKey: 1) { _, _ in throw Offline() } }
            #expect(throws: Offline.self) { try cache.value(forKey: 1) { _, _ in throw Offline() } }
        }
        loadOnThisThread()
        await #expect(throws: Offline.self) { try await cache.value(forKey: 1) { _ async throws in throw Offline() } }
        await #expect(throws: Offline.self) {
            try await cache.values(forKeys: [1, 2]) { _ async throws in throw Offline() }
        }
        await #expect(throws: Offline.self) {
            try await cache.entry(forKey: 1) { _, _ async throws in throw Offline() }
        }
        await #expect(throws: Offline.self) {
            try await cache.value(forKey: 1) { _, _ async throws in throw Offline() }
        }
        #expect(try cache.isEmpty && !cache.isGenerating)
        #expect(try await cache.value(forKey: 1) { _ in "ok" } == "ok")
    }

    // MARK: - Many keys

    /// Loads many keys on a thread or in a task.
    private func load(
        _ keys: [Int], in cache: Cache<Int, String>, onThread isOnThread: Bool,
        _ generate: @escaping @Sendable ([Int]) throws -> [Int: String]
    ) async throws -> [Int: String] {
        if isOnThread { return try await onThread { try cache.values(forKeys: keys, generate: generate) } }
        return try await cache.values(forKeys: keys, generate: generate)
    }

    @Test(arguments: [false, true])
    func `one call of the closure loads all keys that are missing`(isOnThread: Bool) async throws {
        let cache = try bench.numbers()
        try await cache.setValues([1: "in memory", 2: "on disk"])
        cache.memory.removeAll()
        #expect(cache[1] == "in memory")
        let asked = Told<[Int]>()
        let found = try await load([1, 3, 2, 4, 3, 9], in: cache, onThread: isOnThread) { keys in
            asked.add(keys)
            // One key stays without a value, and nobody has asked for 77.
            return [3: "three", 4: "four", 77: "extra"]
        }
        #expect(found == [1: "in memory", 2: "on disk", 3: "three", 4: "four"])
        #expect(asked.all == [[3, 4, 9]])
        #expect(Array(cache.keys) == [1, 2, 3, 4])
        #expect(try await load([], in: cache, onThread: isOnThread) { _ in throw Offline() } == [:])
        #expect(try await load([4, 1], in: cache, onThread: isOnThread) { _ in throw Offline() }.count == 2)
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `of many keys those that are written while the closure runs are not overwritten, and the others are stored`(
        isOnThread: Bool
    ) async throws {
        let cache = try bench.numbers()
        let found = try await load([1, 2, 3], in: cache, onThread: isOnThread) { keys in
            cache[2] = "set"
            try cache.remove(3)
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, "loaded") })
        }
        #expect(found == [1: "loaded", 2: "loaded", 3: "loaded"])
        #expect(try await cache.snapshot() == [1: "loaded", 2: "set"])
    }

    // MARK: - Refusals

    @Test func `inside an update or a transaction stored values are returned, and nothing is loaded`() throws {
        let cache = try bench.numbers()
        try cache.setValues([1: "in memory", 2: "on disk"])
        cache.memory.removeAll()
        #expect(cache[1] == "in memory")
        try bench.manager.transaction { _ throws in
            for (key, value) in [(1, "in memory"), (2, "on disk")] {
                #expect(try cache.value(forKey: key) { _ in "never" } == value)
                #expect(try cache.values(forKeys: [key]) { _ in [key: "never"] } == [key: value])
                #expect(try cache.entry(forKey: key) { _, _ in .value("never") }.value == value)
                #expect(try cache.value(forKey: key) { _, _ in .value("never") } == value)
            }
            expectError(.reentrant) { try cache.value(forKey: 3) { _ in "never" } }
            expectError(.reentrant) { try cache.values(forKeys: [1, 3]) { _ in [3: "never"] } }
            expectError(.reentrant) { try cache.entry(forKey: 3) { _, _ in .value("never") } }
            expectError(.reentrant) { try cache.value(forKey: 3) { _, _ in .value("never") } }
        }
        try cache.update(4) { _ in expectError(.reentrant) { try cache.value(forKey: 3) { _ in "never" } } }
        #expect(Array(cache.keys) == [1, 2])
        #expect(!cache.isGenerating)
    }

    /// Why a handle stores nothing.
    enum Refusal: CaseIterable {
        case readOnly, superseded, removed, closed

        var code: CacheError.Code {
            switch self {
            case .readOnly: .readOnly
            case .superseded, .removed: .superseded
            case .closed: .closed
            }
        }
    }

    private func refused(_ refusal: Refusal) throws -> Cache<Int, String> {
        let cache = try bench.numbers()
        try cache.setValue("two", forKey: 2)
        switch refusal {
        case .readOnly:
            var configuration = bench.time.configuration
            configuration.access = .readOnly
            let manager = try CacheManager(url: bench.folder("store.sqlite"), configuration: configuration)
            return try manager.cache(named: "numbers", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        case .superseded: _ = try bench.numbers(version: "2")
        case .removed: try bench.manager.removeCache(named: "numbers")
        case .closed: try bench.manager.close()
        }
        return cache
    }

    @Test(arguments: Refusal.allCases, LoadForm.allCases)
    func `no closure runs for a handle that can store nothing`(refusal: Refusal, form: LoadForm) async throws {
        let cache = try refused(refusal)
        let begun = LoadGate()
        let error = await #expect(throws: CacheError.self) {
            try await form.load("never", in: cache, begun: begun)
        }
        #expect(error?.code == refusal.code)
        #expect(!begun.isOpen && !cache.isGenerating)
        // A read-only handle serves what is stored.
        if refusal == .readOnly { #expect(try await cache.value(forKey: 2) { _ in "never" } == "two") }
    }

    // MARK: - What is on the disk

    @Test(arguments: [GenerationPolicy(), GenerationPolicy(staleOnError: .seconds(60))])
    func `a value that does not decode is loaded again`(policy: GenerationPolicy) async throws {
        let codec = ValueCodec<String>(identifier: "picky", encode: { Data($0.utf8) }) { data in
            guard data != Data("bad".utf8) else { throw Offline() }
            return String(decoding: data, as: UTF8.self)
        }
        let cache: Cache<Int, String> = try await bench.manager.cache(
            named: "picky", version: "1", maxAge: .hours(1), options: CacheOptions(memory: .disabled), codec: codec)
        try await cache.setValues([1: "bad", 2: "bad", 3: "bad"])
        let generator = cache.generator(policy) { "good \($0)" }
        #expect(try await generator(1) == "good 1")
        #expect(try await cache.values(forKeys: [1, 2]) { _ in [2: "good 2"] } == [1: "good 1", 2: "good 2"])
        let entry = try await cache.entry(forKey: 3) { _, old in
            #expect(old == nil)
            return .value("good 3")
        }
        #expect(entry.value == "good 3")
        // Its old rows are deleted in the background, and these are other ones.
        try await bench.manager.maintain()
        for key in 1...3 { #expect(cache[key] == "good \(key)") }
        try expectInvariants(cache)
    }

    @Test func `a value in a file is loaded and read again`() async throws {
        let cache = try bench.numbers(.hours(1), CacheOptions(memory: .disabled, inlineLimit: 0))
        let entry = try await cache.entry(forKey: 1) { _, _ in .value("large", extendedData: Data([1])) }
        #expect(entry.metadata.isFile && entry.metadata.size == 6 + 1)
        let read = try await cache.entry(forKey: 1)
        #expect(read == entry)
        try expectInvariants(cache)
    }
}
