import Foundation
import Larder
import LarderStore

/// Prints the stored forms of keys whose parts have another order in every process.
@main
struct KeyPrinter {
    struct Point: Codable, Hashable {
        var x: Int
        var y: Int
    }

    struct Key: Codable, Hashable {
        var set: Set<String>
        var points: Set<Point>
        var nested: Set<Set<Int>>
        var byPoint: [Point: [String: Int]]
        var byNumber: [Int: String]
        var byName: [String: Point]
        var optional: Set<Double>?
    }

    static func main() throws {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let key = Key(
            set: Set((0..<50).map { "element \($0)" }), points: Set((0..<20).map { Point(x: $0, y: -$0) }),
            nested: Set((0..<10).map { Set(0..<$0) }),
            byPoint: Dictionary(
                uniqueKeysWithValues: (0..<20).map { (Point(x: $0, y: 1), ["a": $0, "b": 1, "c": 2]) }),
            byNumber: Dictionary(uniqueKeysWithValues: (0..<40).map { ($0, "n") }),
            byName: Dictionary(uniqueKeysWithValues: (0..<40).map { ("name \($0)", Point(x: $0, y: 0)) }),
            optional: [1.5, 2.5, -0.0])
        for stored in [
            try KeyCodec<Key>().stored(key, cache: "keys"), try KeyCodec<Set<String>>().stored(key.set, cache: "keys"),
        ] {
            guard case .blob(let bytes) = stored else { continue }
            print(bytes.map(String.init).joined(separator: " "))
        }
        // Not a key, and not sorted: shows that the order does differ from process to process.
        print(Array(key.set).joined(separator: ","))
    }
}
