package import Larder

/// Work on two sub-caches that a seed determines, and what it makes of them: the model that a killed process is held to.
package struct MixedWork {
    package enum Step: Sendable {
        case set(Int, String)
        case setOther(Int, String)
        case remove(Int)
        case bulk([Int: String])
        case removeMany([Int])
        case update(Int, String)
        case transaction([Int: String], removing: Int, other: String)
        case clear
        case trim(Int)
        case bump
    }

    /// What is in the store, with the order of use of the first sub-cache.
    package struct State: Equatable {
        package var version = 1
        package var values: [Int: String] = [:]
        package var others: [Int: String] = [:]
        var order: [Int] = []

        package init() {}

        /// Whether a store with this in it is one that we know of.
        package func isSame(as state: State) -> Bool {
            version == state.version && values == state.values && others == state.others
        }
    }

    private var random: Seeded
    private var number = 0

    package init(seed: UInt64) { random = Seeded(seed) }

    private mutating func key() -> Int { Int.random(in: 0..<60, using: &random) }

    private mutating func text() -> String {
        number += 1
        let length = Int.random(in: 0..<10, using: &random) == 0 ? 9000 : Int.random(in: 0..<300, using: &random)
        return "\(random.seed) \(number) " + String(repeating: "x", count: length)
    }

    private mutating func texts(_ count: Int) -> [Int: String] {
        var texts: [Int: String] = [:]
        for _ in 0..<count { texts[key()] = text() }
        return texts
    }

    package mutating func next() -> Step {
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<14: .set(key(), text())
        case 14..<18: .setOther(key(), text())
        case 18..<22: .remove(key())
        case 22..<26: .bulk(texts(30))
        case 26..<28: .removeMany((0..<10).map { _ in key() })
        case 28..<32: .update(key(), text())
        case 32..<36: .transaction(texts(5), removing: 60 + key(), other: text())
        case 36: .clear
        case 37, 38: .trim(Int.random(in: 0..<30, using: &random))
        default: .bump
        }
    }
}

extension MixedWork.State {
    private mutating func set(_ key: Int, _ text: String) {
        values[key] = text
        order.removeAll { $0 == key }
        order.append(key)
    }

    private mutating func remove(_ key: Int) {
        values[key] = nil
        order.removeAll { $0 == key }
    }

    /// What the store holds after a step.
    package func after(_ step: MixedWork.Step) -> Self {
        var state = self
        switch step {
        case .set(let key, let text): state.set(key, text)
        case .setOther(let key, let text): state.others[key] = text
        case .remove(let key): state.remove(key)
        case .bulk(let texts): for (key, text) in texts.sorted(by: { $0.key < $1.key }) { state.set(key, text) }
        case .removeMany(let keys): for key in keys { state.remove(key) }
        case .update(let key, let text): state.set(key, text + (values[key]?.prefix(5) ?? "new"))
        case .transaction(let texts, let removed, let other):
            for (key, text) in texts.sorted(by: { $0.key < $1.key }) { state.set(key, text) }
            state.others[removed - 60] = nil
            state.others[100] = other
        case .clear: (state.values, state.order) = ([:], [])
        case .trim(let count): for key in state.order.dropLast(count) { state.remove(key) }
        case .bump:
            (state.values, state.order) = ([:], [])
            state.version += 1
        }
        return state
    }
}

/// The sub-caches that the work is done on.
package struct MixedCaches {
    private let manager: CacheManager
    private var version: Int
    private var values: Cache<Int, String>
    private let others: Cache<Int, String>

    /// The longest texts become files.
    private static let options = CacheOptions(inlineLimit: 4000)

    package init(_ manager: CacheManager, version: Int) throws {
        self.manager = manager
        self.version = version
        values = try Self.values(manager, version)
        others = try manager.cache(named: "others", version: "1", maxAge: .unlimited, options: Self.options)
    }

    private static func values(_ manager: CacheManager, _ version: Int) throws -> Cache<Int, String> {
        try manager.cache(named: "values", version: .custom("\(version)"), maxAge: .days(1), options: options)
    }

    package mutating func perform(_ step: MixedWork.Step) throws {
        switch step {
        case .set(let key, let text): try values.setValue(text, forKey: key)
        case .setOther(let key, let text): try others.setValue(text, forKey: key)
        case .remove(let key): try values.remove(key)
        case .bulk(let texts): try values.setValues(texts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        case .removeMany(let keys): try values.removeValues(forKeys: keys)
        case .update(let key, let text): try values.update(key) { $0 = text + ($0?.prefix(5) ?? "new") }
        case .transaction(let texts, let removed, let other):
            try manager.transaction { transaction in
                for (key, text) in texts.sorted(by: { $0.key < $1.key }) {
                    try transaction.setValue(text, forKey: key, in: values)
                }
                try transaction.removeValue(forKey: removed - 60, in: others)
                try transaction.setValue(other, forKey: 100, in: others)
            }
        case .clear: try values.removeAll()
        case .trim(let count): _ = try values.trim(toCount: count)
        case .bump:
            version += 1
            values = try Self.values(manager, version)
        }
    }

    /// What the store in a manager holds, of whichever version that is.
    package static func state(of manager: CacheManager) throws -> MixedWork.State {
        var state = MixedWork.State()
        let info = try manager.cacheInfo()
        for cache in info where cache.name == "values" { state.version = Int(cache.version.description) ?? -1 }
        let caches = try MixedCaches(manager, version: state.version)
        state.values = try caches.values.snapshot()
        state.others = try caches.others.snapshot()
        guard info.isEmpty || info.map(\.count) == [state.others.count, state.values.count],
            try caches.values.count == state.values.count, try caches.others.count == state.others.count,
            // Passes and listings are no uses, which would change what a trim takes next.
            Dictionary(uniqueKeysWithValues: caches.values.map { ($0.key, $0.value) }) == state.values
        else { throw CacheError(.corrupt, "The calls disagree about what is there.") }
        return state
    }
}
