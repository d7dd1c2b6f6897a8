import Foundation
import LarderCBOR
import LarderTestSupport
import Testing

/// Deep values on threads with a stack of half a megabyte, which is what secondary threads have on Apple's systems.
struct CBORDepthTests {
    struct Chain: Codable {
        var next: [Chain]

        init(depth: Int) {
            next = []
            for _ in 0..<depth { self = Chain(next: [self]) }
        }

        init(next: [Chain]) { self.next = next }

        /// Takes it apart from the outside: releasing it as a whole needs a stack as deep as it is.
        mutating func unlink() {
            while let inner = next.first { self = inner }
        }
    }

    /// Recurses by the superclass's decoder, without the decoder of another value in between.
    final class Nest: Codable {
        enum Key: CodingKey { case number, inner }
        var inner: Nest?

        init(depth: Int) {
            var inner: Nest?
            for _ in 0..<depth { inner = Nest(inner) }
            self.inner = inner
        }

        init(_ inner: Nest?) { self.inner = inner }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            if container.contains(.inner) { inner = try Nest(from: container.superDecoder(forKey: .inner)) }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            // The first call that may throw: an encoder that is too deep refuses here.
            try container.encode(1, forKey: .number)
            try inner?.encode(to: container.superEncoder(forKey: .inner))
        }

        func unlink() {
            var next = inner
            inner = nil
            while let current = next {
                next = current.inner
                current.inner = nil
            }
        }
    }

    /// Recurses by nested containers, in a function of its own.
    struct Walk: Codable {
        var depth: Int

        init(depth: Int) { self.depth = depth }

        init(from decoder: any Decoder) throws {
            depth = try Self.walk(decoder.unkeyedContainer())
        }

        private static func walk(_ container: any UnkeyedDecodingContainer) throws -> Int {
            var container = container
            return container.isAtEnd ? 0 : try walk(container.nestedUnkeyedContainer()) + 1
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            for _ in 0..<depth { container = container.nestedUnkeyedContainer() }
        }
    }

    indirect enum Tree: Codable {
        case leaf
        case node(left: Tree, right: Tree)
    }

    static func bytes(_ prefix: String, _ depth: Int, _ end: String) -> Data {
        Data(Array(repeating: Data(hex: prefix), count: depth).joined()) + Data(hex: end)
    }

    /// Returns the result of `body` on a thread with a stack of `size` bytes.
    static func onThread<R: Sendable>(stack size: Int, _ body: @escaping @Sendable () -> R) throws -> R {
        try SideThread(stackSize: size, body).value()
    }

    static func decodes<T: Decodable>(_ type: T.Type, _ data: Data, _ drop: (inout T) -> Void = { _ in }) -> Bool {
        do {
            var value = try CBORDecoder().decode(type, from: data)
            drop(&value)
            return true
        } catch is DecodingError {
            return false
        } catch {
            Issue.record(error)
            return false
        }
    }

    static func encodes<T: Encodable>(_ value: T, deterministic: Bool) -> Bool {
        var encoder = CBOREncoder()
        encoder.isDeterministic = deterministic
        do {
            _ = try encoder.encode(value)
            return true
        } catch is EncodingError {
            return false
        } catch {
            Issue.record(error)
            return false
        }
    }

    static let small = 512 << 10
    static let large = 16 << 20

    /// Whether each shape at `depth` decodes.
    static func decodesAll(_ depth: Int) -> [Bool] {
        [
            decodes(Chain.self, bytes("a1646e65787481", depth, "a1646e65787480")) { $0.unlink() },
            decodes(CBORValue.self, bytes("81", depth, "80")),
            decodes(CBORValue.self, bytes("a16161", depth, "80")),
            decodes(Walk.self, bytes("81", depth, "80")),
            decodes(Nest.self, bytes("a165696e6e6572", depth, "a0")) { $0.unlink() },
            decodes(Tree.self, bytes("a1646e6f6465a2657269676874a1646c656166a0646c656674", depth, "a1646c656166a0")),
        ]
    }

    /// Whether each shape at `depth` encodes.
    static func encodesAll(_ depth: Int, deterministic: Bool) -> [Bool] {
        var chain = Chain(depth: depth)
        let nest = Nest(depth: depth)
        defer {
            chain.unlink()
            nest.unlink()
        }
        return [
            encodes(chain, deterministic: deterministic), encodes(nest, deterministic: deterministic),
            encodes(Walk(depth: depth), deterministic: deterministic),
        ]
    }

    @Test(.enabled(if: !ChildProcess.isSanitized, "a sanitizer's frames are several times as large"))
    func `fifty levels of anything fit on a stack of half a megabyte`() throws {
        #expect(try Self.onThread(stack: Self.small) { Self.decodesAll(50) } == Array(repeating: true, count: 6))
        for deterministic in [false, true] {
            let encoded = try Self.onThread(stack: Self.small) { Self.encodesAll(50, deterministic: deterministic) }
            #expect(encoded == [true, true, true])
        }
    }

    @Test func `a value that no longer fits on a small stack is an error, whichever level it ends at`() throws {
        for depth in Array(stride(from: 60, to: 620, by: 80)) + [100_000] {
            let decoded = try Self.onThread(stack: Self.small) { Self.decodesAll(depth) }
            // Values deeper than the bound are refused on any stack.
            if depth >= 512 { #expect(decoded == Array(repeating: false, count: 6)) }
        }
        for depth in Array(stride(from: 60, to: 620, by: 80)) + [5_000] {
            for deterministic in [false, true] {
                let encoded = try Self.onThread(stack: Self.small) {
                    Self.encodesAll(depth, deterministic: deterministic)
                }
                if depth >= 512 { #expect(encoded == [false, false, false]) }
            }
        }
    }

    @Test func `on a large stack the bound is one of levels, the same both ways`() throws {
        // A level of the chain is a map and an array, one of the tree a map in a map.
        #expect(try Self.onThread(stack: Self.large) { Self.decodesAll(250) } == Array(repeating: true, count: 6))
        #expect(try Self.onThread(stack: Self.large) { Self.decodesAll(512) } == Array(repeating: false, count: 6))
        for deterministic in [false, true] {
            #expect(
                try Self.onThread(stack: Self.large) { Self.encodesAll(250, deterministic: deterministic) }
                    == [true, true, true])
            #expect(
                try Self.onThread(stack: Self.large) { Self.encodesAll(512, deterministic: deterministic) }
                    == [false, false, false])
        }
    }

    @Test func `content that no type decodes may be deep on any stack`() throws {
        struct Empty: Decodable {}
        for (open, close) in [("81", ""), ("9f", "ff"), ("a100", ""), ("bf00", "ff"), ("c1", "")] {
            let data = Data(hex: "a16178") + Self.bytes(open, 100_000, "00") + Self.bytes(close, 100_000, "")
            #expect(try Self.onThread(stack: Self.small) { Self.decodes(Empty.self, data) })
        }
    }

    @Test func `containers next to each other add no depth`() throws {
        struct Rows: Codable, Equatable {
            var rows: [[Chain.Leaf]]

            init(rows: [[Chain.Leaf]]) { self.rows = rows }

            init(from decoder: any Decoder) throws {
                var outer = try decoder.unkeyedContainer()
                rows = []
                while !outer.isAtEnd {
                    let row = try outer.nestedContainer(keyedBy: CBORValue.Key.self)
                    rows.append([try row.decode(Chain.Leaf.self, forKey: "leaf")])
                }
            }

            func encode(to encoder: any Encoder) throws {
                var outer = encoder.unkeyedContainer()
                for row in rows {
                    var container = outer.nestedContainer(keyedBy: CBORValue.Key.self)
                    try container.encode(row[0], forKey: "leaf")
                }
            }
        }
        let rows = Rows(rows: (0..<2_000).map { [Chain.Leaf(number: $0)] })
        let (encoder, decoder) = (CBOREncoder(), CBORDecoder())
        for _ in 0..<3 { #expect(try decoder.decode(Rows.self, from: encoder.encode(rows)) == rows) }
    }
}

extension CBORDepthTests.Chain {
    struct Leaf: Codable, Equatable {
        var number: Int
    }
}
