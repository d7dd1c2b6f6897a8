import Foundation
import Larder

/// A thousand entries on disk, numbers and values of 100 KB: the table that users of RECache and YYCache know.
///
/// Cold is the first read after the store was opened; the system has the files in its memory all the same.
var thousandScenarios: [Scenario] {
    let encoder = CBOREncoder()
    let decoder = CBORDecoder()
    let numbers = Thousand<Int>(name: "number", count: 1_000) {
        $0
    } shelves: {
        [
            .larder(),
            .sqlite { number in
                attempt { try encoder.encode(number) }
            } decode: { data in
                attempt { try decoder.decode(Int.self, from: data) }
            },
            .files { number in
                attempt { try encoder.encode(number) }
            } decode: { data in
                attempt { try decoder.decode(Int.self, from: data) }
            },
        ]
    }
    let large = Thousand<Data>(name: "100KB", count: Options.isSmall ? 50 : 1_000) { edition in
        blob(size: 100_000, edition: edition)
    } shelves: {
        [
            .larder(),
            .files {
                $0
            } decode: {
                $0
            },
            .sqlite {
                $0
            } decode: {
                $0
            },
        ]
    }
    return numbers.scenarios + large.scenarios
}

/// One way of keeping values.
private struct Shelf<Value: Codable & Sendable> {
    let name: String
    /// Opens what is at a place, or makes it.
    let open: (URL) -> (set: (Int, Value) -> Void, get: (Int) -> Value?)

    static func larder(_ name: String = "larder", memory: MemoryLimits = .disabled) -> Shelf {
        Shelf(name: name) { folder in
            let manager = attempt { try CacheManager(url: folder.appendingPathComponent("store.sqlite")) }
            let cache: Cache<Int, Value> = attempt {
                try manager.cache(
                    named: "values", version: "1", maxAge: .days(7), options: CacheOptions(memory: memory))
            }
            return ({ key, value in attempt { try cache.setValue(value, forKey: key) } }, { cache[$0] })
        }
    }

    static func sqlite(_ encode: @escaping (Value) -> Data, decode: @escaping (Data) -> Value) -> Shelf {
        Shelf(name: "SQLite") { folder in
            let raw = RawSQLite(folder.appendingPathComponent("raw.sqlite").path)
            return ({ raw.set($0, encode($1)) }, { raw.get($0).map(decode) })
        }
    }

    static func files(_ encode: @escaping (Value) -> Data, decode: @escaping (Data) -> Value) -> Shelf {
        Shelf(name: "files") { folder in
            let files = FileFolder(folder.appendingPathComponent("files").path)
            return ({ files.write(encode($1), $0) }, { files.read($0).map(decode) })
        }
    }
}

/// A shelf in use; its folder goes with it.
private final class OpenShelf<Value: Codable & Sendable> {
    private let folder = Workplace.folder.appendingPathComponent(UUID().uuidString)
    private let shelf: Shelf<Value>
    private(set) var set: (Int, Value) -> Void
    private(set) var get: (Int) -> Value?

    init(_ shelf: Shelf<Value>) {
        self.shelf = shelf
        attempt { [folder] in try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
        (set, get) = shelf.open(folder)
    }

    deinit {
        close()
        do { try FileManager.default.removeItem(at: folder) } catch { print(error) }
    }

    func reopen() -> OpenShelf {
        close()
        (set, get) = shelf.open(folder)
        return self
    }

    private func close() { (set, get) = ({ _, _ in }, { _ in nil }) }
}

/// The operations on one kind of value.
private struct Thousand<Value: Codable & Sendable> {
    let name: String
    let count: Int
    /// Makes a value that differs from others.
    let make: (Int) -> Value
    /// The subject, the yardstick, and another.
    let shelves: () -> [Shelf<Value>]

    init(name: String, count: Int, make: @escaping (Int) -> Value, shelves: @escaping () -> [Shelf<Value>]) {
        self.name = name
        self.count = count
        self.make = make
        self.shelves = shelves
    }

    var scenarios: [Scenario] {
        let filled = shelves().map { shelf in Lazily { fill(OpenShelf(shelf)) } }
        let fronted = Shelf<Value>.larder("larder, memory on", memory: MemoryLimits(byteLimit: nil))
        let editions = Counter(1_000_000)
        var generator = SeededGenerator(seed: 11)
        let order = (0..<count).shuffled(using: &generator)
        return [
            scenario("write") { shelf, _ in
                Variant(shelf.name, operations: count, eachTime: { OpenShelf(shelf) }) { _ = fill($0) }
            },
            scenario("replace") { shelf, index in
                Variant(shelf.name, operations: count, once: { filled[index].value }) { open in
                    for key in order { open.set(key, make(editions.advance())) }
                }
            },
            scenario("read-warm", and: [reading(fronted.name, { fill(OpenShelf(fronted)) }, order)]) { shelf, index in
                reading(shelf.name, { filled[index].value }, order)
            },
            scenario("read-cold") { shelf, index in
                Variant(shelf.name, operations: count, eachTime: { filled[index].value.reopen() }) { open in
                    for key in order { consume(open.get(key)) }
                }
            },
            scenario("missing") { shelf, index in
                Variant(shelf.name, operations: count, once: { filled[index].value }) { open in
                    for key in order { precondition(open.get(key + count) == nil) }
                }
            },
        ]
    }

    private func fill(_ open: OpenShelf<Value>) -> OpenShelf<Value> {
        for key in 0..<count { open.set(key, make(key)) }
        return open
    }

    private func reading(_ name: String, _ open: @escaping () -> OpenShelf<Value>, _ order: [Int]) -> Variant {
        Variant(name, operations: count, once: open) { open in
            for key in order { consume(open.get(key)) }
        }
    }

    private func scenario(
        _ operation: String, and others: [Variant] = [], _ variant: (Shelf<Value>, Int) -> Variant
    ) -> Scenario {
        let variants = shelves().enumerated().map { variant($1, $0) }
        return Scenario("thousand-\(name)-\(operation)", variants + others)
    }
}
