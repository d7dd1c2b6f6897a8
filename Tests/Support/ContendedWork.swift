import Foundation
package import Larder

/// Work that several processes do on the same keys: what it leaves does not follow from a seed, but some of it must hold
/// whoever was first.
package struct ContendedWork {
    package enum Step: Sendable {
        case count
        case set(Int, Int)
        case remove(Int)
        case bulk([Int: Int])
        case clear
        case trim(Int)
        case bump(Int)
        case setOfVersion(Int, Int)
    }

    private var random: Seeded

    package init(seed: UInt64) {
        random = Seeded(seed)
    }

    private mutating func key() -> Int { Int.random(in: 0..<80, using: &random) }

    private mutating func length() -> Int {
        Int.random(in: 0..<4, using: &random) == 0
            ? Int.random(in: 4000..<12_000, using: &random) : Int.random(in: 0..<300, using: &random)
    }

    package mutating func next() -> Step {
        switch Int.random(in: 0..<24, using: &random) {
        case 0..<7: .count
        case 7..<14: .set(key(), length())
        case 14: .remove(key())
        case 15, 16: .bulk(Dictionary((0..<8).map { _ in (key(), length()) }) { $1 })
        case 17: .clear
        case 18: .trim(Int.random(in: 0..<40, using: &random))
        case 19: .bump(Int.random(in: 1..<4, using: &random))
        default: .setOfVersion(key(), length())
        }
    }
}

/// The caches that contended work is done on.
package struct ContendedCaches {
    /// How many entries one of them may have.
    package static let countLimit = 40

    private let manager: CacheManager
    private let counts: Cache<Int, Int>
    private let texts: Cache<Int, String>
    private var versioned: Cache<Int, String>

    private static let options = CacheOptions(inlineLimit: MixedWork.inlineLimit)

    /// - Parameter version: What one of them is opened under; nil for what it has.
    package init(_ manager: CacheManager, version: Int?) throws {
        self.manager = manager
        var limited = Self.options
        limited.disk = DiskLimits(countLimit: Self.countLimit)
        counts = try manager.cache(named: "contended counts", version: "1", maxAge: .unlimited)
        texts = try manager.cache(named: "contended texts", version: "1", maxAge: .unlimited, options: limited)
        let found = try manager.cacheInfo().first { $0.name == "contended versions" }?.version.description
        versioned = try Self.versioned(manager, version ?? found.flatMap { Int($0) } ?? 1)
    }

    private static func versioned(_ manager: CacheManager, _ version: Int) throws -> Cache<Int, String> {
        try manager.cache(
            named: "contended versions", version: .custom("\(version)"), maxAge: .unlimited, options: options)
    }

    package mutating func perform(_ step: ContendedWork.Step) throws {
        switch step {
        case .count:
            // An update keeps only this process out.
            try manager.transaction { transaction in
                try transaction.setValue((try transaction.value(forKey: 0, in: counts) ?? 0) + 1, forKey: 0, in: counts)
            }
        case .set(let key, let length): try texts.setValue(Self.text("1", key, length), forKey: key)
        case .remove(let key): try texts.remove(key)
        case .bulk(let lengths): try texts.setValues(lengths.map { ($0.key, Self.text("1", $0.key, $0.value)) })
        case .clear: try texts.removeAll()
        case .trim(let count): try texts.trim(toCount: count)
        case .bump(let version): versioned = try Self.versioned(manager, version)
        case .setOfVersion(let key, let length): try setOfVersion(key, length)
        }
    }

    private func setOfVersion(_ key: Int, _ length: Int) throws(CacheError) {
        let text = Self.text("\(versioned.version)", key, length)
        do throws(CacheError) {
            try versioned.setValue(text, forKey: key)
        } catch {
            // Another process has opened another version; the next bump opens ours again.
            if error.code != .superseded { throw error }
        }
    }

    /// A text that shows whether it is whole, and whose it is.
    private static func text(_ version: String, _ key: Int, _ length: Int) -> String {
        "\(version) \(key) \(length) " + String(repeating: "y", count: length)
    }

    /// How far everybody has counted.
    package var count: Int { get throws { try counts.value(forKey: 0) ?? 0 } }

    /// Texts that are not what anybody wrote for their keys under the version that is live.
    package func strangeTexts() throws -> [String] {
        var strange: [String] = []
        let infos = try manager.cacheInfo()
        for (name, cache) in [("contended texts", texts), ("contended versions", versioned)] {
            guard let info = infos.first(where: { $0.name == name }) else { continue }
            let texts = try cache.snapshot()
            if texts.count != info.count { strange.append("\(name) has \(texts.count) and says \(info.count)") }
            for (key, text) in texts {
                let length = Int(text.split(separator: " ").dropFirst(2).first ?? "") ?? -1
                guard length < 0 || text != Self.text("\(info.version)", key, length) else { continue }
                strange.append("\(name) of version \(info.version) has for \(key) “\(text.prefix(30))”")
            }
        }
        return strange
    }
}
