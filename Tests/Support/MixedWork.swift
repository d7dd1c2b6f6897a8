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
        switch Int.random(in: 0..<48, using: &random) {
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
        default: .set(key(), text())
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
        case .setOver(let key, _): state.remove(key)
        case .setOther(let key, let text): state.others[key] = text
        case .remove(let key): state.remove(key)
        case .bulk(let texts): for (key, text) in texts.sorted(by: { $0.key < $1.key }) { state.set(key, text) }
        case .removeMany(let keys): for key in keys { state.remove(key) }
        case .update(let key, let text): state.set(key, text + (values[key]?.prefix(5) ?? "new"))
        case .transaction(let texts, let removed, let other, let text):
            for (key, text) in texts.sorted(by: { $0.key < $1.key }) { state.set(key, text) }
            state.others[removed] = nil
            state.others[other] = text
        case .clear: (state.values, state.order) = ([:], [])
        case .trim(let count): for key in state.order.dropLast(count) { state.remove(key) }
        case .bump:
            (state.values, state.order) = ([:], [])
            state.version += 1
        case .sweep, .maintain: break
        }
        return state
    }
}
