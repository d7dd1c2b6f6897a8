import Foundation
import Larder
import LarderTestSupport
import Testing

/// One way in which a sub-cache may be configured.
struct ContractCase: Sendable, CustomTestStringConvertible {
    enum Store: CaseIterable { case file, memory }
    enum Age: CaseIterable { case unlimited, plain, sliding, until }

    let store: Store
    let durability: CacheManager.Durability
    let memory: MemoryLimits
    let age: Age

    static let all: [ContractCase] = {
        var cases: [ContractCase] = []
        for store in Store.allCases {
            for durability in [CacheManager.Durability.processCrash, .powerLoss] {
                for memory in [MemoryLimits(), .disabled, MemoryLimits(countLimit: 3)] {
                    for age in Age.allCases {
                        cases.append(ContractCase(store: store, durability: durability, memory: memory, age: age))
                    }
                }
            }
        }
        return cases
    }()

    var testDescription: String {
        "\(store), \(durability), memory \(memory.countLimit.map(String.init) ?? "on"), \(age)"
    }
}

/// What every legal configuration does alike.
struct ContractTests {
    private let folder: TemporaryFolder
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Opens a store of the case, runs `body`, and checks what is left.
    private func with(_ contract: ContractCase, _ body: (Cache<String, [Int]>) throws -> Void) throws {
        var configuration = time.configuration
        configuration.durability = contract.durability
        let manager =
            try contract.store == .memory
            ? CacheManager.inMemory(configuration: configuration)
            : CacheManager(url: folder("store.sqlite"), configuration: configuration)
        let age: MaxAge =
            switch contract.age {
            case .unlimited: .unlimited
            case .plain: .seconds(100)
            case .sliding: .seconds(100).sinceLastAccess
            case .until: .until(time.now + 100)
            }
        let cache: Cache<String, [Int]> = try manager.cache(
            named: "contract", version: "1", maxAge: age, options: CacheOptions(memory: contract.memory))
        try body(cache)
        try expectInvariants(cache)
        try manager.close()
        // case 121
        if contract.store == .memory { #expect(try folder.names == []) }
        let path = folder.url.path
        try OpenFiles.wait(for: { $0.hasPrefix(path) }, until: { $0 == 0 })
    }

    // case 108, 110, 120, 121
    @Test(arguments: ContractCase.all)
    func `values are set, read, replaced and removed`(contract: ContractCase) throws {
        try with(contract) { cache in
            #expect(cache["a"] == nil)
            cache["a"] = [1]
            cache["b"] = []
            #expect(cache["a"] == [1] && cache["b"] == [])
            cache["a"] = [2]
            #expect(try cache.value(forKey: "a") == [2] && cache.count == 2)
            cache["a"] = nil
            #expect(try cache["a"] == nil && !cache.contains("a") && cache.count == 1)
            #expect(try cache.removeValue(forKey: "a") == nil)
            #expect(try cache.removeValue(forKey: "b") == [])
            #expect(try cache.isEmpty && cache.sizeOnDisk == 0)
            cache["c"] = [3]
            try cache.removeAll()
            #expect(cache["c"] == nil)
            cache["c"] = [4]
            #expect(cache["c"] == [4])
        }
    }

    @Test(arguments: ContractCase.all)
    func `many at once, updates and transactions`(contract: ContractCase) throws {
        try with(contract) { cache in
            try cache.setValues((0..<700).map { ("\($0)", [$0]) })
            #expect(try cache.values(forKeys: ["1", "699", "700"]) == ["1": [1], "699": [699]])
            #expect(cache.map(\.key) == (0..<700).map(String.init).sorted())
            try cache.removeValues(forKeys: (0..<600).map(String.init))
            #expect(try cache.removeAll { $0.value[0] >= 650 } == 50)
            #expect(try cache.removeAll(whereMetadata: { key, _ in key > "640" }) == 9)
            try cache.update("600") { $0?.append(1) }
            try cache.manager.transaction { transaction in
                try transaction.setValue([1], forKey: "x", in: cache)
                try transaction.removeValue(forKey: "601", in: cache)
            }
            #expect(cache["600"] == [600, 1] && cache["x"] == [1] && cache["601"] == nil)
            #expect(try cache.count == 41)
        }
    }

    @Test(arguments: ContractCase.all)
    func `ages end precisely`(contract: ContractCase) throws {
        try with(contract) { cache in
            cache["a"] = [1]
            try cache.setValue([2], forKey: "own", maxAge: .seconds(150))
            time.set(time.now + 60)
            #expect(cache["a"] == [1])
            time.set(time.now + 40)
            #expect(try cache["a"] == [1] && cache.count == 2)
            time.set(time.now + 0.001)
            let isThere = contract.age == .unlimited || contract.age == .sliding
            #expect(try cache["a"] == (isThere ? [1] : nil) && cache.count == (isThere ? 2 : 1))
            #expect(try cache.contains("a") == isThere)
            #expect(try cache.removeExpired() == (isThere ? 0 : 1))
            time.set(time.now + 100.001)
            #expect((cache["a"] != nil) == (contract.age == .unlimited) && cache["own"] == nil)
            #expect(try cache.removeExpired() == (contract.age == .sliding ? 2 : 1))
        }
    }

    @Test(arguments: ContractCase.all)
    func `extended data, pins and trims`(contract: ContractCase) throws {
        try with(contract) { cache in
            for key in ["a", "b", "c", "d", "e"] { cache[key] = [1] }
            try cache.setValue([1], forKey: "c", extendedData: Data([1, 2]), pinned: true)
            #expect(try cache.entry(forKey: "c")?.extendedData == Data([1, 2]))
            try cache.setExtendedData(Data(), forKey: "d")
            #expect(try cache.extendedData(forKey: "d") == Data())
            for key in ["d", "a"] { #expect(cache[key] == [1]) }
            #expect(try cache.trim(toCount: 3) == 2)
            #expect(cache.map(\.key) == ["a", "c", "d"])
            #expect(try cache.trim(toSize: 0) == 2)
            #expect(cache.map(\.key) == ["c"])
        }
    }

    @Test(arguments: ContractCase.all)
    func `a random sequence agrees with a dictionary`(contract: ContractCase) throws {
        var random = Seeded()
        let seed = random.seed
        try with(contract) { cache in
            var model: [String: [Int]] = [:]
            for step in 0..<150 {
                let key = String(Int.random(in: 0..<12, using: &random))
                switch Int.random(in: 0..<12, using: &random) {
                case 0..<4:
                    cache[key] = [step]
                    model[key] = [step]
                case 4:
                    cache[key] = nil
                    model[key] = nil
                case 5:
                    try cache.update(key) { $0 = ($0 ?? []) + [step] }
                    model[key, default: []].append(step)
                case 6:
                    #expect(try cache.removeValue(forKey: key) == model.removeValue(forKey: key), "seed \(seed)")
                case 7:
                    try cache.setValues([key: [step], "z": [0]])
                    model.merge([key: [step], "z": [0]]) { $1 }
                case 8 where step % 5 == 0:
                    try cache.removeAll()
                    model = [:]
                case 9:
                    #expect(try cache.count == model.count, "seed \(seed)")
                    #expect(cache.map(\.key) == model.keys.sorted(), "seed \(seed)")
                default:
                    #expect(cache[key] == model[key], "seed \(seed)")
                    #expect(try cache.contains(key) == (model[key] != nil), "seed \(seed)")
                }
            }
            #expect(try cache.snapshot() == model, "seed \(seed)")
        }
    }
}
