import Foundation
package import Larder

/// The caches that mixed work is done on.
package struct MixedCaches {
    private let manager: CacheManager
    private var version: Int
    private var values: Cache<Int, String>
    private var others: Cache<Int, String>
    private var steps = 0

    private static let options = CacheOptions(inlineLimit: MixedWork.inlineLimit)

    package init(_ manager: CacheManager, version: Int) throws {
        self.manager = manager
        self.version = version
        values = try Self.values(manager, version)
        others = try Self.others(manager)
    }

    private static func values(_ manager: CacheManager, _ version: Int) throws -> Cache<Int, String> {
        try manager.cache(named: "values", version: .custom("\(version)"), maxAge: .days(1), options: options)
    }

    private static func others(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(named: "others", version: "1", maxAge: .unlimited, options: options)
    }

    /// Does a step; every third in its asynchronous form, where it has one.
    package mutating func perform(_ step: MixedWork.Step) throws {
        steps += 1
        if steps % 3 == 0, try performInTask(step) { return }
        switch step {
        case .set(let key, let text): try Self.set(text, key, in: values)
        case .setOver(let key, let text):
            // Not pinned: a trim leaves those, also where they are over, and counts them.
            try values.setValue(
                text, forKey: key, maxAge: .seconds(0), extendedData: Self.extended(text), pinned: false)
        case .setOther(let key, let text): try Self.set(text, key, in: others)
        case .remove(let key): try values.remove(key)
        case .bulk(let texts): try values.setValues(texts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        case .removeMany(let keys): try values.removeValues(forKeys: keys)
        case .update(let key, let text): try values.update(key) { $0 = text + ($0?.prefix(5) ?? "new") }
        case .transaction(let texts, let removed, let other, let text):
            try manager.transaction { transaction in
                for (key, text) in texts.sorted(by: { $0.key < $1.key }) {
                    try transaction.setValue(
                        text, forKey: key, in: values, extendedData: Self.extended(text),
                        pinned: MixedWork.isPinned(key))
                }
                try transaction.removeValue(forKey: removed, in: others)
                try transaction.setValue(
                    text, forKey: other, in: others, extendedData: Self.extended(text),
                    pinned: MixedWork.isPinned(other))
            }
        case .clear: try values.removeAll()
        case .trim(let count): _ = try values.trim(toCount: count)
        case .bump:
            version += 1
            values = try Self.values(manager, version)
        case .sweep: try values.removeExpired()
        case .maintain: try manager.maintain()
        case .setExtended(let key, let text): try values.setExtendedData(Self.extended(text), forKey: key)
        case .read(let keys): try read(keys)
        case .removeOthers:
            try manager.removeCache(named: "others")
            others = try Self.others(manager)
        }
    }

    /// Does a step in its asynchronous form; false if it has none.
    private func performInTask(_ step: MixedWork.Step) throws -> Bool {
        let (manager, values, others) = (manager, values, others)
        switch step {
        case .set(let key, let text): try waiting { try await Self.set(text, key, in: values) }
        case .setOther(let key, let text): try waiting { try await Self.set(text, key, in: others) }
        case .remove(let key): try waiting { _ = try await values.removeValue(forKey: key) }
        case .bulk(let texts):
            try waiting { try await values.setValues(texts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }) }
        case .removeMany(let keys): _ = try waiting { try await values.removeValues(forKeys: keys) }
        case .clear: try waiting { try await values.clear() }
        case .trim(let count): try waiting { _ = try await values.trim(toCount: count) }
        case .sweep: try waiting { _ = try await values.removeExpired() }
        case .maintain: try waiting { _ = try await manager.maintain() }
        case .setExtended(let key, let text):
            try waiting { try await values.setExtendedData(Self.extended(text), forKey: key) }
        case .setOver, .update, .transaction, .bump, .read, .removeOthers: return false
        }
        return true
    }

    private static func extended(_ text: String) -> Data { Data(MixedWork.extended(of: text).utf8) }

    private static func set(_ text: String, _ key: Int, in cache: Cache<Int, String>) throws {
        try cache.setValue(text, forKey: key, extendedData: extended(text), pinned: MixedWork.isPinned(key))
    }

    private static func set(_ text: String, _ key: Int, in cache: Cache<Int, String>) async throws {
        try await cache.setValue(text, forKey: key, extendedData: extended(text), pinned: MixedWork.isPinned(key))
    }

    /// Reads in ways that are no uses of what trims may take, and throws if they disagree.
    private func read(_ keys: [Int]) throws {
        for key in keys {
            // Nobody trims the others.
            if let entry = try others.entry(forKey: key), entry.extendedData != Self.extended(entry.value) {
                throw CacheError(.corrupt, "What stands beside \(key) is not of its text.")
            }
            let isThere = try values.contains(key)
            guard try (values.metadata(forKey: key) != nil) == isThere,
                try isThere || values.extendedData(forKey: key) == nil
            else { throw CacheError(.corrupt, "The calls disagree about \(key).") }
        }
        let texts = try others.values(forKeys: keys)
        let missing = try keys.filter { try (texts[$0] == nil) == others.contains($0) }
        if !missing.isEmpty { throw CacheError(.corrupt, "The calls disagree about \(missing).") }
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
            try caches.values.snapshot() == state.values.mapValues(\.text),
            try caches.others.snapshot() == state.others.mapValues(\.text)
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
        (state.values, state.others) = (items(of: caches.values), items(of: caches.others))
        return (caches, state, infos)
    }

    /// By a pass, which is no use, that would change what a trim takes next.
    private static func items(of cache: Cache<Int, String>) -> [Int: MixedWork.Item] {
        var items: [Int: MixedWork.Item] = [:]
        for entry in cache.entries() {
            items[entry.key] = MixedWork.Item(
                text: entry.value, extended: entry.extendedData.map { String(decoding: $0, as: UTF8.self) },
                isPinned: entry.metadata.isPinned)
        }
        return items
    }
}
