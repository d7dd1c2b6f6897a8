import Larder

/// Work on two sub-caches that a seed determines, and what it makes of them: the model that a killed process is held to.
package struct MixedWork {
    package enum Step: Sendable {
        case set(Int, String)
        /// One that is over when it is written.
        case setOver(Int, String)
        case setOther(Int, String)
        case remove(Int)
        case bulk([Int: String])
        case removeMany([Int])
        case update(Int, String)
        case transaction([Int: String], removing: Int, other: Int, String)
        case clear
        case trim(Int)
        case bump
        case sweep
        case maintain
        /// Bytes beside a text, which say whose they are.
        case setExtended(Int, String)
        /// Reads that are no uses: what is used is written down later, and lost with a process that is killed.
        case read([Int])
        case removeOthers
    }

    /// What is stored for a key.
    package struct Item: Equatable {
        package var text: String
        package var extended: String?
        package var isPinned = false
    }

    /// What is stored beside a text: a row with the one and another's is half written.
    package static func extended(of text: String) -> String { "of " + text.prefix { $0 != "x" } }

    /// Whether the entry of a key is pinned, where that is said with the write.
    package static func isPinned(_ key: Int) -> Bool { key % 3 == 0 }

    /// What is in the store, with the order of use of the first sub-cache.
    package struct State: Equatable {
        package var version = 1
        package var values: [Int: Item] = [:]
        package var others: [Int: Item] = [:]
        var order: [Int] = []

        package init() {}

        /// Whether a store with this in it is one that we know of.
        package func isSame(as state: State) -> Bool {
            version == state.version && values == state.values && others == state.others
        }
    }

    /// The keys of each of several processes that do such work on one store.
    package static func keys(of place: Int) -> Range<Int> { place * 1000..<(place + 1) * 1000 }

    /// Texts of more bytes become files.
    package static let inlineLimit = 4000

    /// After how many steps a traced process copies the log besides.
    package static let stepsPerCopy = 15

    private var random: Seeded
    private var number = 0
    private let place: Int?

    /// - Parameter place: Which of several processes does it, with keys of its own and nothing that reaches beyond them;
    ///   nil where it is the only one.
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
        case 44...45 where place == nil: .trim(Int.random(in: 0..<30, using: &random))
        case 46...47 where place == nil: .bump
        case 48..<51: .setExtended(key(), text())
        case 51..<54: .read((0..<5).map { _ in key() })
        case 54 where place == nil: .removeOthers
        default: .set(key(), text())
        }
    }
}

extension MixedWork.State {
    private mutating func set(_ key: Int, _ item: MixedWork.Item) {
        values[key] = item
        order.removeAll { $0 == key }
        order.append(key)
    }

    private mutating func remove(_ key: Int) {
        values[key] = nil
        order.removeAll { $0 == key }
    }

    /// Takes the least recently used until so many are left, or nothing but what is pinned.
    private mutating func trim(to count: Int) {
        let free = order.filter { values[$0]?.isPinned == false }
        for key in free.prefix(max(0, order.count - count)) { remove(key) }
    }

    /// What the store holds after a step.
    package func after(_ step: MixedWork.Step) -> Self {
        var state = self
        switch step {
        case .set(let key, let text): state.set(key, MixedWork.item(key, text))
        case .setOver(let key, _): state.remove(key)
        case .setOther(let key, let text): state.others[key] = MixedWork.item(key, text)
        case .remove(let key): state.remove(key)
        case .bulk(let texts):
            // A write that says nothing of a pin keeps it.
            for (key, text) in texts.sorted(by: { $0.key < $1.key }) {
                state.set(key, MixedWork.Item(text: text, isPinned: values[key]?.isPinned ?? false))
            }
        case .removeMany(let keys): for key in keys { state.remove(key) }
        case .update(let key, let text):
            // Of what was there, all but the text stays.
            let item = values[key] ?? MixedWork.Item(text: "new")
            state.set(
                key,
                MixedWork.Item(
                    text: text + item.text.prefix(5), extended: item.extended, isPinned: item.isPinned))
        case .transaction(let texts, let removed, let other, let text):
            for (key, text) in texts.sorted(by: { $0.key < $1.key }) { state.set(key, MixedWork.item(key, text)) }
            state.others[removed] = nil
            state.others[other] = MixedWork.item(other, text)
        case .clear: (state.values, state.order) = ([:], [])
        case .trim(let count): state.trim(to: count)
        case .bump:
            (state.values, state.order) = ([:], [])
            state.version += 1
        case .setExtended(let key, let text): state.values[key]?.extended = MixedWork.extended(of: text)
        case .removeOthers: state.others = [:]
        case .sweep, .maintain, .read: break
        }
        return state
    }
}

extension MixedWork {
    /// What is stored by a write of one text.
    fileprivate static func item(_ key: Int, _ text: String) -> Item {
        Item(text: text, extended: extended(of: text), isPinned: isPinned(key))
    }
}
