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
