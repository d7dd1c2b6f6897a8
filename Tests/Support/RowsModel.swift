internal import Foundation
package import LarderStore

/// Changes that follow from a seed, and the entries that they leave: a test knows what a killed program had done.
package struct RowsModel {
    /// The number of keys.
    package static let keys: Int64 = 30

    private let seed: UInt64
    package private(set) var count = 0
    package private(set) var entries: [Int64: String] = [:]

    package init(seed: UInt64) {
        self.seed = seed
    }

    /// Goes on until so many changes are made.
    package mutating func advance(to count: Int) {
        while self.count < count { _ = next() }
    }

    /// Makes the next change, and returns it as a request.
    package mutating func next() -> Change {
        count += 1
        var random = Seeded(seed &+ UInt64(count) &* 0x9E37_79B9)
        let keys = (0..<4).map { _ in Int64.random(in: 0..<Self.keys, using: &random) }
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            entries = [:]
            return .clear
        case 1...4:
            for key in keys { entries[key] = nil }
            return .remove(keys.map(StoredKey.integer))
        case 5...9:
            entries[keys[0]] = nil
            return .take(.integer(keys[0]))
        default:
            let text = String(repeating: "x", count: .random(in: 0...3000, using: &random)) + "\(count)"
            for key in keys { entries[key] = text }
            return .put(
                keys.map { EntryWrite(key: .integer($0), payload: Data(text.utf8), writtenAt: 0) })
        }
    }
}

extension CacheDeclaration {
    /// The cache of the model.
    package static let rows = CacheDeclaration(name: "rows", version: "1", codec: "data", ageRule: .unlimited)
}
