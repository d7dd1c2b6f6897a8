/// The container of a map.
struct CBORKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    /// All keys that `Key` has a value for, in the order of the map.
    ///
    /// A malformed map has none here; decoding any of them throws.
    var allKeys: [Key] {
        do throws(CBORFault) { return try frame.allKeys(Key.self) } catch { return [] }
    }

    func contains(_ key: Key) -> Bool {
        do throws(CBORFault) { return try frame.find(key) != nil } catch { return false }
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        let reader = frame.input.pointee.at(try frame.require(key))
        do throws(CBORFault) {
            return try reader.isNil(layers: 0)
        } catch {
            throw frame.state.failure(error, Any?.self, in: frame)
        }
    }

    @inline(__always)
    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type, forKey key: Key) throws -> Primitive {
        try frame.read(type, key)
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try frame.read(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try frame.read(type, key) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try frame.decode(type, at: try frame.require(key))
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try frame.readIfPresent(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try frame.readIfPresent(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try frame.readIfPresent(type, key) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try frame.readIfPresent(type, key)
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let offset = try frame.locate(key) else { return nil }
        if let end = frame.endOfNull(at: offset) {
            // A value for an optional in an optional is the inner nil: for the outer one, the key would be missing.
            guard CBOROptionals.isOptional(type) else {
                frame.advance(to: end)
                return nil
            }
        }
        return try frame.decode(type, at: offset)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try frame.openNested(frame.require(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try frame.openNested(frame.require(key)).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        try frame.openNested(frame.require(CBORPathKey.superclass))
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try frame.openNested(frame.require(key))
    }
}

extension CBORDecodingFrame {
    /// Returns the offset of the value for `key`, or nil.
    @inline(__always)
    func locate<Key: CodingKey>(_ key: Key) throws -> Int? {
        do throws(CBORFault) { return try find(key) } catch { throw state.failure(error, Any.self, in: self) }
    }

    /// Returns the offset of the value for `key`.
    @inline(__always)
    func require<Key: CodingKey>(_ key: Key) throws -> Int {
        guard let offset = try locate(key) else { throw missing(key) }
        return offset
    }

    func missing(_ key: any CodingKey) -> DecodingError {
        .keyNotFound(
            key,
            DecodingError.Context(
                codingPath: codingPath,
                debugDescription: "No value for the key \"\(key.stringValue)\" in the map at byte \(item)."))
    }

    /// Returns the end of the null at `offset`, if there is one.
    @inline(__always)
    func endOfNull(at offset: Int) -> Int? {
        let reader = input.pointee.at(offset)
        guard offset < reader.count else { return nil }
        let byte = reader.base.load(fromByteOffset: offset, as: UInt8.self)
        if byte == CBORFormat.null || byte == CBORFormat.undefined { return offset &+ 1 }
        return byte & 0xE0 == CBORFormat.Major.tag ? reader.endOfTaggedNull : nil
    }

    /// Reads the value for `key`.
    @inline(__always)
    func read<Key: CodingKey, Primitive: CBORPrimitive>(_ type: Primitive.Type, _ key: Key) throws -> Primitive {
        try read(type, at: try require(key))
    }

    @inline(__always)
    func readIfPresent<Key: CodingKey, Primitive: CBORPrimitive>(
        _ type: Primitive.Type, _ key: Key
    ) throws -> Primitive? {
        guard let offset = try locate(key) else { return nil }
        if let end = endOfNull(at: offset) {
            advance(to: end)
            return nil
        }
        return try read(type, at: offset)
    }

    @inline(__always)
    private func read<Primitive: CBORPrimitive>(_ type: Primitive.Type, at offset: Int) throws -> Primitive {
        var reader = input.pointee.at(offset)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            advance(to: reader.offset)
            return value
        } catch {
            throw state.failure(error, type, in: self)
        }
    }

    @inline(__always)
    func decode<T: Decodable>(_ type: T.Type, at offset: Int) throws -> T {
        let step = element
        let value = try state.decode(type, at: offset, in: self)
        // The value may have read on in this map, through a decoder of its own.
        element = step
        advance(to: state.end)
        return value
    }

    /// Returns a decoder for the value at `offset`.
    func openNested(_ offset: Int) throws -> CBORDecoding {
        CBORDecoding(frame: try state.push((any Decoder).self, at: offset, in: self))
    }
}

/// The container of an array.
///
/// A copy has a position of its own, as programs that look ahead expect. It has three words, because a larger value
/// would take a box in each `any`.
struct CBORUnkeyedDecoding: UnkeyedDecodingContainer {
    private let frame: CBORDecodingFrame
    /// The offset of the next element.
    private var cursor: Int
    private(set) var currentIndex = 0

    /// - Parameter frame: The frame of an array.
    init(frame: CBORDecodingFrame) {
        self.frame = frame
        cursor = frame.first
    }

    var codingPath: [any CodingKey] { frame.codingPath }

    /// The number of elements of this array, counted if its head doesn't contain it.
    var count: Int? {
        if frame.count >= 0 { return frame.count }
        var reader = frame.input.pointee.at(cursor)
        var total = currentIndex
        do throws(CBORFault) {
            while try !reader.skipStop() {
                try reader.skip()
                total += 1
            }
        } catch {
            return nil
        }
        return total
    }

    var isAtEnd: Bool { frame.isAtEnd(after: currentIndex, at: cursor) }

    mutating func decodeNil() throws -> Bool {
        try checkElement(Never?.self)
        guard let end = frame.endOfNull(at: cursor) else { return false }
        advance(to: end)
        return true
    }

    @inline(__always)
    mutating func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        try read(type)
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try read(type) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try read(type) }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try checkElement(type)
        let value = try frame.state.decode(type, at: cursor, in: frame)
        advance(to: frame.state.end)
        return value
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try nested { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try nested { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try nested { $0 }
    }

    /// Returns the result of `open` for the element at the cursor, which counts as read, however much of it is read.
    private mutating func nested<Inner>(_ open: (CBORDecoding) throws -> Inner) throws -> Inner {
        try checkElement(Inner.self)
        let end: Int
        do throws(CBORFault) {
            end = try frame.input.pointee.endOfItem(at: cursor)
        } catch {
            throw frame.state.failure(error, Inner.self, in: frame)
        }
        let opened = try open(CBORDecoding(frame: frame.state.push(Inner.self, at: cursor, in: frame)))
        advance(to: end)
        return opened
    }

    @inline(__always)
    private mutating func read<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        try checkElement(type)
        var reader = frame.input.pointee.at(cursor)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            advance(to: reader.offset)
            return value
        } catch {
            throw frame.state.failure(error, type, in: frame)
        }
    }

    /// Checks that there is an element, which is then a step of the path.
    @inline(__always)
    private func checkElement(_ type: Any.Type) throws {
        frame.element = ~currentIndex
        if isAtEnd { throw missingElementError(type) }
    }

    private func missingElementError(_ type: Any.Type) -> DecodingError {
        .valueNotFound(
            type,
            DecodingError.Context(
                codingPath: codingPath + frame.elementPath,
                debugDescription: "The array at byte \(frame.item) has no more elements."))
    }

    /// Moves on after the element at the cursor, which ends at `end`.
    @inline(__always)
    private mutating func advance(to end: Int) {
        cursor = end
        currentIndex &+= 1
        frame.noteRead(currentIndex, to: end)
    }
}

/// The container of a value that is one item.
struct CBORSingleValueDecoding: SingleValueDecodingContainer {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    func decodeNil() -> Bool {
        do throws(CBORFault) {
            let reader = frame.input.pointee.at(frame.item)
            if try reader.isNil(layers: frame.layers) { return true }
            guard try reader.peek() & 0xE0 == CBORFormat.Major.tag, try reader.isNil(layers: .max) else { return false }
            // The nil of an optional further inside. A type that is not an optional ignores the difference and takes
            // it.
            return !CBOROptionals.isOptional(frame.type)
        } catch {
            return false
        }
    }

    @inline(__always)
    func decode<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        try read(type)
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: Int128.Type) throws -> Int128 { try read(type) }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func decode(_ type: UInt128.Type) throws -> UInt128 { try read(type) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let state = frame.state
        frame.element = CBORDecodingFrame.noStep
        let value = try state.decode(type, at: frame.item, in: frame, layers: frame.layers + 1)
        frame.singleEnd = state.end
        return value
    }

    @inline(__always)
    private func read<Primitive: CBORPrimitive>(_ type: Primitive.Type) throws -> Primitive {
        var reader = frame.input.pointee.at(frame.item)
        do throws(CBORFault) {
            let value = try type.decoded(from: &reader)
            frame.singleEnd = reader.offset
            return value
        } catch {
            frame.element = CBORDecodingFrame.noStep
            throw frame.state.failure(error, type, in: frame)
        }
    }
}

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
