import Foundation
import Larder
import LarderTestSupport
import Testing

/// One way in which a cache may be configured.
struct ContractCase: Sendable, CustomTestStringConvertible {
    enum Store: CaseIterable { case file, memory }
    enum Age: CaseIterable { case unlimited, plain, sliding, until }
    enum Inline: CaseIterable { case none, standard, all }

    let store: Store
    let durability: CacheManager.Durability
    let memory: MemoryLimits
    let age: Age
    let inline: Inline

    static let all: [ContractCase] = {
        var cases: [ContractCase] = []
        for store in Store.allCases {
            for durability in [CacheManager.Durability.processCrash, .powerLoss] {
                for memory in [MemoryLimits(), .disabled, MemoryLimits(countLimit: 3)] {
                    for age in Age.allCases {
                        for inline in Inline.allCases {
                            cases.append(
                                ContractCase(
                                    store: store, durability: durability, memory: memory, age: age, inline: inline))
                        }
                    }
                }
            }
        }
        // Each fifth has every setting at least once, which is enough for short tests and sanitizers.
        if LongTests.areEnabled && !ChildProcess.isSanitized { return cases }
        return stride(from: 0, to: cases.count, by: 5).map { cases[$0] }
    }()

    var testDescription: String {
        "\(store), \(durability), memory \(memory.countLimit.map(String.init) ?? "on"), \(age), inline \(inline)"
    }

    /// Whether a value is a file, one of a few bytes or one above the standard limit.
    func isFile(large: Bool) -> Bool {
        store == .file && (inline == .none || (large && inline == .standard))
    }

    func manager(_ folder: TemporaryFolder, _ time: ManualClock) throws -> CacheManager {
        var configuration = time.configuration
        configuration.durability = durability
        return switch store {
        case .memory: try CacheManager.inMemory(configuration: configuration)
        case .file: try CacheManager(url: folder("store.sqlite"), configuration: configuration)
        }
    }

    /// - Parameter start: What an age that ends at a moment counts from.
    func cache(
        _ manager: CacheManager, memory: MemoryLimits? = nil, start: Date
    ) throws -> Cache<String, [Int]> {
        let maxAge: MaxAge =
            switch age {
            case .unlimited: .unlimited
            case .plain: .seconds(100)
            case .sliding: .seconds(100).sinceLastAccess
            case .until: .until(start + 100)
            }
        var options = CacheOptions(memory: memory ?? self.memory, accessGrain: .zero)
        // What other tests do to the memory of the process is not this one's.
        options.clearsOnMemoryPressure = false
        switch inline {
        case .none: options.inlineLimit = 0
        case .standard: break
        case .all: options.inlineLimit = .max
        }
        return try manager.cache(named: "contract", version: "1", maxAge: maxAge, options: options)
    }
}
