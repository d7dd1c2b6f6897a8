import Foundation
import Larder
import LarderTestSupport
import Testing

/// What every legal configuration does alike.
struct ContractTests {
    private let folder: TemporaryFolder
    private let time = ManualClock()

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Opens a store of the case, runs `body`, and checks what is left, then and when it is opened again.
    private func with(_ contract: ContractCase, _ body: (Cache<String, [Int]>) throws -> Void) throws {
        let start = time.now
        var contents: [String: [Int]] = [:]
        do {
            let manager = try contract.manager(folder, time)
            let cache = try contract.cache(manager, start: start)
            try body(cache)
            try expectContract(cache, time)
            contents = try cache.snapshot()
            try manager.close()
        }
        switch contract.store {
        case .memory: #expect(try folder.names == [])
        case .file:
            let manager = try contract.manager(folder, time)
            let cache = try contract.cache(manager, memory: .disabled, start: start)
            #expect(try cache.snapshot() == contents)
            try expectContract(cache, time)
            try manager.close()
        }
        let path = folder.url.path
        try OpenFiles.wait(for: { $0.hasPrefix(path) }, until: { $0 == 0 })
    }

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
            // Files take longer to write than rows.
            let tenth = contract.inline == .none ? 2 : 10
            let all = 70 * tenth
            try cache.setValues((0..<all).map { ("\($0)", [$0]) })
            #expect(
                try cache.values(forKeys: ["1", "\(all - 1)", "\(all)"]) == ["1": [1], "\(all - 1)": [all - 1]])
            #expect(cache.map(\.key) == (0..<all).map(String.init).sorted())
            let (first, last) = (60 * tenth, 64 * tenth)
            try cache.removeValues(forKeys: (0..<first).map(String.init))
            #expect(try cache.removeAll { $0.value[0] >= 65 * tenth } == 5 * tenth)
            #expect(try cache.removeAll(whereMetadata: { key, _ in key > "\(last)" }) == tenth - 1)
            try cache.update("\(first)") { $0?.append(1) }
            try cache.manager.transaction { transaction in
                try transaction.setValue([1], forKey: "x", in: cache)
                try transaction.removeValue(forKey: "\(first + 1)", in: cache)
            }
            #expect(cache["\(first)"] == [first, 1] && cache["x"] == [1] && cache["\(first + 1)"] == nil)
            #expect(try cache.count == 4 * tenth + 1)
        }
    }

    @Test(arguments: ContractCase.all)
    func `values outgrow their rows and come back`(contract: ContractCase) throws {
        let (small, large) = ([1], Array(repeating: 1_000_000, count: 8000))
        try with(contract) { cache in
            func expect(_ value: [Int], _ key: String) throws {
                let isFile = contract.isFile(large: value.count > 1)
                #expect(try cache.metadata(forKey: key)?.isFile == isFile)
                #expect(cache[key] == value)
                cache.memory.trim(toCount: 0)
                #expect(cache[key] == value)
            }
            cache["a"] = small
            try expect(small, "a")
            cache["a"] = large
            try expect(large, "a")
            try cache.setExtendedData(Data([1, 2, 3]), forKey: "a")
            try expect(large, "a")
            try cache.update("a") { $0 = small }
            try expect(small, "a")
            #expect(try cache.extendedData(forKey: "a") == Data([1, 2, 3]))
            try cache.manager.transaction { transaction in
                try transaction.setValue(large, forKey: "a", in: cache)
                try transaction.setValue(small, forKey: "b", in: cache)
            }
            try expect(large, "a")
            try cache.setValues(["a": small, "b": large])
            try expect(small, "a")
            try expect(large, "b")
            #expect(throws: Offline.self) { try cache.update("b") { _ in throw Offline() } }
            #expect(throws: Offline.self) {
                try cache.manager.transaction { transaction in
                    try transaction.setValue(large, forKey: "c", in: cache)
                    throw Offline()
                }
            }
            try expect(large, "b")
            #expect(try cache.removeValue(forKey: "b") == large)
            cache["b"] = large
            #expect(try (cache.fileURL(forKey: "b") != nil) == contract.isFile(large: true))
            time.advance(by: .milliseconds(1))
            #expect(cache["a"] == small)
            #expect(try cache.trim(toSize: 1000) == 1)
            #expect(cache.map(\.key) == ["a"])
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
