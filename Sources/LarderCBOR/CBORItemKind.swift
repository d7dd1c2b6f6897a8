/// The kind of item as which values of a type are read.
package enum CBORItemKind: Sendable, Equatable {
    case text, integer, other

    /// Asks a type for what its `init(from:)` reads.
    ///
    /// - Returns: Nil if it tries several kinds.
    package init?<T: Decodable>(of type: T.Type) {
        let probe = CBORKindProbe()
        do { _ = try probe.decode(type) } catch {}
        guard let kind = probe.kinds.first, probe.kinds.count == 1 else { return nil }
        self = kind
    }
}

/// A decoder that has no data, and notes what is read.
private final class CBORKindProbe: Decoder, SingleValueDecodingContainer {
    private(set) var kinds: Set<CBORItemKind> = []
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    private struct NoData: Error {}

    private func note(_ asked: CBORItemKind) -> NoData {
        kinds.insert(asked)
        return NoData()
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> { throw note(.other) }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw note(.other) }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    // An optional is of the kind of what it wraps.
    func decodeNil() -> Bool { false }

    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive { throw note(Self.kind(type)) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type) throws -> Int128 { throw note(.integer) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type) throws -> UInt128 { throw note(.integer) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let known = type as? any CBORKnown.Type { throw note(Self.kind(known)) }
        return try T(from: self)
    }

    private static func kind(_ type: any CBORKnown.Type) -> CBORItemKind {
        type == String.self ? .text : type is any FixedWidthInteger.Type ? .integer : .other
    }
}
