import Foundation
import Larder

/// The random operations on one cache.
struct CacheOperations<Key: ModelKey, Value: ModelValue> {
    let model: Model
    let session: Session
    let cache: Cache<Key, Value>

    func run() {
        let (key, value) = (model.pick(Key.space), Value.sample(&model.random))
        switch model.roll(0..<100) {
        case 0..<24: read(key)
        case 24..<52: write(key, value)
        case 52..<62: change(key)
        case 62..<70: update(key, value)
        case 70..<79: remove(key)
        case 79..<91: iterate()
        case 91..<97: measure()
        default: trim()
        }
    }

    private func attempt(_ operation: String, _ body: () throws -> String) {
        model.attempt("\(cache.name) \(operation)", body)
    }

    private func perform(_ operation: String, _ body: () throws -> Void) { attempt(operation) { done(body) } }

    private func someKeys() -> [Key] { (0..<model.roll(0..<6)).map { _ in model.pick(Key.space) } }

    private func list(_ keys: [Key]) -> String { keys.map(\.text).joined(separator: " ") }

    /// A dictionary has no order, so its keys are sorted.
    private func list(_ values: [Key: Value]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0.key.text)=\($0.value.text)" }.joined(separator: ", ")
    }

    // MARK: Reading

    private func read(_ key: Key) {
        switch model.roll(0..<9) {
        case 0, 1: attempt("[\(key.text)]") { nilOrText(cache[key]) }
        case 2: attempt("value \(key.text)") { nilOrText(try cache.value(forKey: key)) }
        case 3:
            let keys = someKeys()
            attempt("values \(list(keys))") { list(try cache.values(forKeys: keys)) }
        case 4, 5:
            let allowsExpired = model.chance(2)
            attempt("entry \(key.text), expired too \(allowsExpired)") {
                try cache.entry(forKey: key, allowingExpired: allowsExpired)?.text ?? "nil"
            }
        case 6: attempt("metadata \(key.text)") { try cache.metadata(forKey: key)?.text ?? "nil" }
        case 7: attempt("extendedData \(key.text)") { nilOrText(try cache.extendedData(forKey: key)) }
        default: attempt("contains \(key.text)") { "\(try cache.contains(key))" }
        }
    }

    private func iterate() {
        switch model.roll(0..<9) {
        case 0, 1:
            attempt("iteration") { cache.map { "\($0.key.text)=\($0.value.text)" }.joined(separator: ", ") }
        case 2: attempt("keys") { list(Array(cache.keys)) }
        case 3: attempt("values") { cache.values.map(\.text).joined(separator: ", ") }
        case 4: attempt("snapshot") { list(try cache.snapshot()) }
        default: iterateInOrder()
        }
    }

    private func iterateInOrder() {
        // `.accessed` is left out: the order of use is exact to the grain alone.
        let order = model.pick([EntryOrder.key, .written, .size])
        let descending = model.chance(2)
        let prefix: String? = model.chance(3) ? model.pick(["", "k", "k1", "\u{e9}", "x"]) : nil
        let limit: Int? = model.chance(3) ? model.roll(0..<12) : nil
        let range = "prefix \(prefix ?? "none"), limit \(limit.map { "\($0)" } ?? "none")"
        attempt("entries by \(order), descending \(descending), \(range)") {
            let found = Array(
                cache.entries(orderedBy: order, descending: descending, prefix: prefix, limit: limit))
            if order == .key { return found.map(\.text).joined(separator: ", ") }
            let places = found.map { order == .size ? Int64($0.metadata.size) : $0.metadata.writtenAt.milliseconds }
            // Those with an equal place come in any order, and a limit may cut them anywhere.
            let cut = found.count == limit ? places.last : nil
            let certain = zip(found, places).filter { $1 != cut }.map { $0.0 }.sorted { $0.key < $1.key }
            return "\(places): " + certain.map(\.text).joined(separator: ", ")
        }
    }

    private func measure() {
        switch model.roll(0..<6) {
        case 0, 1: attempt("count") { "\(try cache.count)" }
        case 2: attempt("isEmpty") { "\(try cache.isEmpty)" }
        case 3, 4: attempt("sizeOnDisk") { "\(try cache.sizeOnDisk)" }
        default: perform("memory.removeAll") { cache.memory.removeAll() }
        }
    }

    private func write(_ key: Key, _ value: Value) {
        switch model.roll(0..<10) {
        case 0..<4: perform("[\(key.text)] = \(value.text)") { cache[key] = value }
        case 4: perform("[\(key.text)] = nil") { cache[key] = nil }
        case 5..<9:
            let attributes = Attributes(model)
            let value: Value? = model.chance(30) ? nil : value
            perform("setValue \(key.text) \(nilOrText(value)), \(attributes.text)") {
                try cache.setValue(
                    value, forKey: key, cost: attributes.cost, maxAge: attributes.maxAge,
                    extendedData: attributes.extendedData, tags: attributes.tags, pinned: attributes.pinned)
            }
        default:
            // A key may come twice.
            let values = someKeys().map { ($0, Value.sample(&model.random)) }
            let texts = values.map { "\($0.0.text)=\($0.1.text)" }
            perform("setValues \(texts.joined(separator: " "))") { try cache.setValues(values) }
        }
    }

    private func change(_ key: Key) {
        switch model.roll(0..<5) {
        case 0:
            let data = Attributes(model).extendedData
            perform("setExtendedData \(key.text) \(nilOrText(data))") { try cache.setExtendedData(data, forKey: key) }
            // One build forgets the last access then.
            _ = cache[key]
        case 1, 2:
            let isPinned = model.chance(2)
            attempt("setPinned \(key.text) \(isPinned)") { "\(try cache.setPinned(isPinned, forKey: key))" }
            _ = cache[key]
        default:
            // Without an age, an own duration restarts, and an own `.until` stays.
            let maxAge = model.sampleAge()
            attempt("touch \(key.text), age \(maxAge?.description ?? "kept")") {
                "\(try cache.touch(key, maxAge: maxAge))"
            }
        }
    }

    private func update(_ key: Key, _ value: Value) {
        let kind = model.pick(["set", "change", "remove", "throw"])
        attempt("update \(key.text), \(kind), \(value.text)") {
            var (old, new): (Value?, Value?) = (nil, nil)
            try cache.update(key) { (current: inout Value?) throws -> Void in
                old = current
                new = kind == "remove" || kind == "change" && old == nil ? nil : value
                current = new
                if kind == "throw" { throw Refusal() }
            }
            // The row of an expired entry is deleted in one build and stays in the other.
            if old == nil && new == nil { try cache.remove(key) }
            return nilOrText(old)
        }
    }

    private func remove(_ key: Key) {
        switch model.roll(0..<24) {
        case 0..<6: attempt("removeValue \(key.text)") { nilOrText(try cache.removeValue(forKey: key)) }
        case 6..<10: perform("remove \(key.text)") { try cache.remove(key) }
        case 10..<14:
            let keys = someKeys()
            perform("removeValues \(list(keys))") { try cache.removeValues(forKeys: keys) }
        case 14..<20: removeChosen()
        case 20:
            let tag = model.pick(Attributes.allTags)
            attempt("removeAll tagged \(tag)") { "\(try cache.removeAll(tagged: tag))" }
        case 21, 22: attempt("removeExpired") { "\(try cache.removeExpired()), count \(try cache.count)" }
        case 23 where model.chance(3): attempt("removeAll") { "\(try cache.removeAll())" }
        default: measure()
        }
    }

    private func removeChosen() {
        let (chosen, rest) = (someKeys(), model.roll(0..<5))
        let failing: Key? = model.chance(4) ? model.pick(Key.space) : nil
        let end = "throwing at \(failing?.text ?? "none")"
        attempt("removeAll where \(list(chosen)), \(end)") {
            let count = try cache.removeAll(where: { entry in
                if entry.key == failing { throw Refusal() }
                return chosen.contains(entry.key)
            })
            return "\(count)"
        }
        attempt("removeAll whereMetadata, rest \(rest), \(end)") {
            let count = try cache.removeAll(whereMetadata: { key, metadata in
                if key == failing { throw Refusal() }
                return metadata.isFile ? metadata.size > 90_000 : metadata.size % 5 == rest && !metadata.isPinned
            })
            return "\(count)"
        }
    }

    private func trim() {
        let order = Exclusions.readsBeforeTrims ? Key.space.shuffled(using: &model.random) : []
        let isToCount = model.chance(2)
        let (count, percent) = (model.roll(-1..<20), model.roll(0..<101))
        let read = order.isEmpty ? "" : ", read in order \(list(order))"
        attempt("trim \(isToCount ? "to \(count) entries" : "to \(percent) % of the size")\(read)") {
            // Each read is at another moment, so that the order of use is defined.
            for key in order {
                model.clock.advance(by: 1)
                _ = try cache.value(forKey: key)
            }
            // A trim deletes other expired rows in each build, so it finds none.
            let expired = try session.removeExpired()
            if isToCount {
                try cache.trim(toCount: count)
            } else {
                try cache.trim(toSize: cache.sizeOnDisk * Int64(percent) / 100)
            }
            if Exclusions.printsTrimmedKeys {
                return "expired \(expired), count \(try cache.count), keys \(list(Array(cache.keys)))"
            }
            // A size leaves more or fewer entries, depending on which ones are evicted.
            let left = isToCount ? "\(try cache.count)" : "some"
            try cache.removeAll()
            return "expired \(expired), count \(left)"
        }
    }
}

/// A key of the model.
protocol ModelKey: Codable, Comparable, Hashable, Sendable {
    static var space: [Self] { get }
}

extension ModelKey {
    /// The key in NFC, as a listing spells it.
    var text: String { "'\(self)'".precomposedStringWithCanonicalMapping }
}

/// A value of the model.
protocol ModelValue: Codable, Equatable, Sendable {
    static func sample(_ random: inout SplitMix) -> Self
    var text: String { get }
}

extension Int: ModelKey {
    static var space: [Int] { Array(-10..<20) }
}

extension String: ModelKey, ModelValue {
    static var space: [String] { ["", "e\u{301}", "日本"] + (0..<27).map { "k\($0)" } }

    static func sample(_ random: inout SplitMix) -> String {
        String(repeating: "value", count: Int.random(in: 0..<8, using: &random)) + String(random.next(), radix: 36)
    }
}

extension [Int]: ModelValue {
    static func sample(_ random: inout SplitMix) -> [Int] {
        (0..<Int.random(in: 0..<12, using: &random)).map { _ in Int.random(in: -300..<70_000, using: &random) }
    }

    var text: String { "\(self)" }
}

extension Data: ModelValue {
    /// Returns eight random bytes, and then the first one over and over, so that a short text tells all of it.
    static func sample(_ random: inout SplitMix) -> Data {
        // None, few, about as many as a row takes, and as many as are a file.
        let range = [0...0, 1...100, 32_760...32_776, 32_769...100_000].randomElement(using: &random) ?? 0...0
        let (count, word) = (Int.random(in: range, using: &random), random.next())
        let head = (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        return Data(head.prefix(count)) + Data(repeating: head[0], count: Swift.max(0, count - 8))
    }

    var text: String {
        let (head, tail) = (prefix(8), dropFirst(8))
        let sum = head.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let isWhole = tail == Data(repeating: head.first ?? 0, count: tail.count)
        return "\(count) bytes #\(String(sum, radix: 16))\(isWhole ? "" : " torn")"
    }
}

extension Date {
    var milliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded()) }
}

extension EntryMetadata {
    /// Everything but `accessedAt`, which is exact to the grain alone.
    var text: String {
        "size \(size), written \(writtenAt.milliseconds), expires \(expiresAt?.milliseconds ?? -1), "
            + "pinned \(isPinned), file \(isFile)"
    }
}

extension CacheEntry where Key: ModelKey, Value: ModelValue {
    var text: String {
        "\(key.text)=\(value.text) extended \(nilOrText(extendedData)) \(metadata.text), expired \(isExpired)"
    }
}

/// An error of a closure of the model.
struct Refusal: Error {}

/// Returns that a call without an answer is done, or the code of its error.
func done(_ body: () throws -> Void) -> String {
    outcome {
        try body()
        return "done"
    }
}

func nilOrText(_ value: (some ModelValue)?) -> String { value?.text ?? "nil" }
