/// Changes of two caches that follow from a seed, and the entries that they leave.
///
/// A test knows by them what the store of a killed process must have. No change depends on the order of use, since a
/// killed process has not stamped its accesses.
package struct MixedWork {
    package enum Step: Sendable {
        case set(Int, String)
        /// Writes an entry that has expired at once.
        case setOver(Int, String)
        case setOther(Int, String)
        case remove(Int)
        case bulk([Int: String])
        case removeMany([Int])
        case update(Int, String)
        case transaction([Int: String], removing: Int, other: Int, String)
        case clear
        /// Removes all entries that are not pinned: the count is 0.
        case trim(Int)
        /// Opens the first cache under the next version.
        case bump
        case sweep
        case maintain
        case setExtended(Int, String)
        case read([Int])
        case removeOthers
    }

    /// The entry of a key.
    package struct Item: Equatable {
        package var text: String
        package var extended: String?
        package var isPinned = false
    }

    /// Returns the extended data of a text, which shows that both were written together.
    package static func extended(of text: String) -> String { "of " + text.prefix { $0 != "x" } }

    /// Returns whether an entry is pinned by a write that says so.
    package static func isPinned(_ key: Int) -> Bool { key % 3 == 0 }

    /// The entries of the store.
    package struct State {
        package var version = 1
        package var values: [Int: Item] = [:]
        package var others: [Int: Item] = [:]

        package init() {}

        package func isSame(as state: State) -> Bool {
            version == state.version && values == state.values && others == state.others
        }
    }

    /// Returns the keys of one of several processes that change the same store.
    package static func keys(of place: Int) -> Range<Int> { place * 1000..<(place + 1) * 1000 }

    /// The bytes above which a text is a file.
    package static let inlineLimit = 4000

    /// The number of steps after which a traced process does all upkeep, which copies the log.
    package static let stepsPerCopy = 15

    private var random: Seeded
    private var number = 0
    private let place: Int?

    /// - Parameter place: The number of the process, which then changes only keys of its own; nil for the only process.
    package init(seed: UInt64, place: Int? = nil) {
        random = Seeded(seed)
        self.place = place
    }

    private var firstKey: Int { Self.keys(of: place ?? 0).lowerBound }

    private mutating func key() -> Int { firstKey + Int.random(in: 0..<60, using: &random) }

    private mutating func text() -> String {
        number += 1
        let length =
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1: Int.random(in: 4000..<20_000, using: &random)
            // On both sides of the limit.
            case 2: Int.random(in: 3950..<4000, using: &random)
            default: Int.random(in: 0..<300, using: &random)
            }
        return "\(random.seed) \(number) " + String(repeating: "x", count: length)
    }

    private mutating func texts(_ count: Int) -> [Int: String] {
        var texts: [Int: String] = [:]
        for _ in 0..<count { texts[key()] = text() }
        return texts
    }

    package mutating func next() -> Step {
        switch Int.random(in: 0..<56, using: &random) {
        case 0..<15: .set(key(), text())
        case 15..<19: .setOther(key(), text())
        case 19..<23: .remove(key())
        case 23..<26: .bulk(texts(20))
        case 26..<28: .removeMany((0..<10).map { _ in key() })
        case 28..<33: .update(key(), text())
        case 33..<37: .transaction(texts(5), removing: key(), other: firstKey + 100, text())
        case 37..<40: .setOver(key(), text())
        case 40, 41: .sweep
        case 42: .maintain
        case 43 where place == nil: .clear
        case 44 where place == nil: .trim(0)
        case 45...47 where place == nil: .bump
        case 48..<51: .setExtended(key(), text())
        case 51..<54: .read((0..<5).map { _ in key() })
        case 54 where place == nil: .removeOthers
        default: .set(key(), text())
        }
    }
}

extension MixedWork.State {
    /// Returns the entries after a step.
    package func after(_ step: MixedWork.Step) -> Self {
        var state = self
        switch step {
        case .set(let key, let text): state.values[key] = MixedWork.item(key, text)
        case .setOver(let key, _): state.values[key] = nil
        case .setOther(let key, let text): state.others[key] = MixedWork.item(key, text)
        case .remove(let key): state.values[key] = nil
        case .bulk(let texts):
            // A write that says nothing of a pin keeps it.
            for (key, text) in texts {
                state.values[key] = MixedWork.Item(text: text, isPinned: values[key]?.isPinned ?? false)
            }
        case .removeMany(let keys): for key in keys { state.values[key] = nil }
        case .update(let key, let text):
            // An update keeps all of an entry but its text.
            var item = values[key] ?? MixedWork.Item(text: "new")
            item.text = text + item.text.prefix(5)
            state.values[key] = item
        case .transaction(let texts, let removed, let other, let text):
            for (key, text) in texts { state.values[key] = MixedWork.item(key, text) }
            state.others[removed] = nil
            state.others[other] = MixedWork.item(other, text)
        case .clear: state.values = [:]
        case .trim: state.values = values.filter { $0.value.isPinned }
        case .bump:
            state.values = [:]
            state.version += 1
        case .setExtended(let key, let text): state.values[key]?.extended = MixedWork.extended(of: text)
        case .removeOthers: state.others = [:]
        case .sweep, .maintain, .read: break
        }
        return state
    }
}

extension MixedWork {
    /// Returns the entry that a write of one text leaves.
    fileprivate static func item(_ key: Int, _ text: String) -> Item {
        Item(text: text, extended: extended(of: text), isPinned: isPinned(key))
    }
}
