package import Larder

/// The sub-caches that mixed work is done on.
package struct MixedCaches {
    private let manager: CacheManager
    private var version: Int
    private var values: Cache<Int, String>
    private let others: Cache<Int, String>

    private static let options = CacheOptions(inlineLimit: MixedWork.inlineLimit)

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
        case .setOver(let key, let text): try values.setValue(text, forKey: key, maxAge: .seconds(0))
        case .setOther(let key, let text): try others.setValue(text, forKey: key)
        case .remove(let key): try values.remove(key)
        case .bulk(let texts): try values.setValues(texts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        case .removeMany(let keys): try values.removeValues(forKeys: keys)
        case .update(let key, let text): try values.update(key) { $0 = text + ($0?.prefix(5) ?? "new") }
        case .transaction(let texts, let removed, let other, let text):
            try manager.transaction { transaction in
                for (key, text) in texts.sorted(by: { $0.key < $1.key }) {
                    try transaction.setValue(text, forKey: key, in: values)
                }
                try transaction.removeValue(forKey: removed, in: others)
                try transaction.setValue(text, forKey: other, in: others)
            }
        case .clear: try values.removeAll()
        case .trim(let count): _ = try values.trim(toCount: count)
        case .bump:
            version += 1
            values = try Self.values(manager, version)
        case .sweep: try values.removeExpired()
        case .maintain: try manager.maintain()
        }
    }

    /// What the store in a manager holds, of whichever version that is.
    package static func state(of manager: CacheManager) throws -> MixedWork.State {
        let (caches, state, infos) = try contents(of: manager)
        let isCounted = infos.allSatisfy { info in
            // Those that are over are counted nowhere.
            switch info.name {
            case "values": info.count == state.values.count
            case "others": info.count == state.others.count
            default: true
            }
        }
        guard isCounted, try caches.values.count == state.values.count, try caches.others.count == state.others.count,
            // Passes and listings are no uses, which would change what a trim takes next.
            Dictionary(uniqueKeysWithValues: caches.values.map { ($0.key, $0.value) }) == state.values
        else { throw CacheError(.corrupt, "The calls disagree about what is there.") }
        return state
    }

    /// The keys of one of several processes, the others of which may be at work.
    package static func state(of manager: CacheManager, place: Int) throws -> MixedWork.State {
        var state = try contents(of: manager).state
        let keys = MixedWork.keys(of: place)
        state.values = state.values.filter { keys.contains($0.key) }
        state.others = state.others.filter { keys.contains($0.key) }
        return state
    }

    private static func contents(
        of manager: CacheManager
    ) throws -> (caches: MixedCaches, state: MixedWork.State, infos: [CacheInfo]) {
        var state = MixedWork.State()
        let infos = try manager.cacheInfo()
        for info in infos where info.name == "values" { state.version = Int(info.version.description) ?? -1 }
        let caches = try MixedCaches(manager, version: state.version)
        state.values = try caches.values.snapshot()
        state.others = try caches.others.snapshot()
        return (caches, state, infos)
    }
}
