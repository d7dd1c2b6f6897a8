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
