/// The container of a value that is one item.
struct CBORSingleValueDecoding: SingleValueDecodingContainer {
    let handle: CBORDecodingHandle
    let item: Int
    let serial: UInt32
    let layers: UInt32

    private var frame: CBORDecodingFrame { handle.frame }

    var codingPath: [any CodingKey] { frame.codingPath }

    func decodeNil() -> Bool {
        do throws(CBORFault) {
            let reader = frame.input.pointee.at(item)
            if try reader.isNil(layers: Int(layers)) { return true }
            guard try reader.peek() & 0xE0 == CBORFormat.Major.tag, try reader.isNil(layers: .max) else { return false }
            // The nil of an optional further in. One that is no optional knows nothing of such and takes it.
            return frame.serial == serial && !CBOROptionals.isOptional(frame.type)
        } catch {
            return false
        }
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try read { reader throws(CBORFault) in try reader.bool() }
    }
    func decode(_ type: String.Type) throws -> String {
        try read { reader throws(CBORFault) in try reader.string() }
    }
    func decode(_ type: Double.Type) throws -> Double {
        try read { reader throws(CBORFault) in try reader.double() }
    }
    func decode(_ type: Float.Type) throws -> Float {
        try read { reader throws(CBORFault) in try reader.float() }
    }
    func decode(_ type: Int.Type) throws -> Int {
        try read { reader throws(CBORFault) in try reader.integer(Int.self) }
    }
    func decode(_ type: Int8.Type) throws -> Int8 {
        try read { reader throws(CBORFault) in try reader.integer(Int8.self) }
    }
    func decode(_ type: Int16.Type) throws -> Int16 {
        try read { reader throws(CBORFault) in try reader.integer(Int16.self) }
    }
    func decode(_ type: Int32.Type) throws -> Int32 {
        try read { reader throws(CBORFault) in try reader.integer(Int32.self) }
    }
    func decode(_ type: Int64.Type) throws -> Int64 {
        try read { reader throws(CBORFault) in try reader.integer(Int64.self) }
    }
    func decode(_ type: Int128.Type) throws -> Int128 {
        try read { reader throws(CBORFault) in try reader.integer(Int128.self) }
    }
    func decode(_ type: UInt.Type) throws -> UInt {
        try read { reader throws(CBORFault) in try reader.integer(UInt.self) }
    }
    func decode(_ type: UInt8.Type) throws -> UInt8 {
        try read { reader throws(CBORFault) in try reader.integer(UInt8.self) }
    }
    func decode(_ type: UInt16.Type) throws -> UInt16 {
        try read { reader throws(CBORFault) in try reader.integer(UInt16.self) }
    }
    func decode(_ type: UInt32.Type) throws -> UInt32 {
        try read { reader throws(CBORFault) in try reader.integer(UInt32.self) }
    }
    func decode(_ type: UInt64.Type) throws -> UInt64 {
        try read { reader throws(CBORFault) in try reader.integer(UInt64.self) }
    }
    func decode(_ type: UInt128.Type) throws -> UInt128 {
        try read { reader throws(CBORFault) in try reader.integer(UInt128.self) }
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let state = frame.state
        frame.element = CBORDecodingFrame.noStep
        let value = try state.decode(type, at: item, in: frame, layers: Int(layers) + 1)
        if frame.serial == serial { frame.singleEnd = state.end }
        return value
    }

    @inline(__always)
    private func read<R>(_ body: (inout CBORReader) throws(CBORFault) -> R) throws -> R {
        var reader = frame.input.pointee.at(item)
        do throws(CBORFault) {
            let value = try body(&reader)
            if frame.serial == serial { frame.singleEnd = reader.offset }
            return value
        } catch {
            frame.element = CBORDecodingFrame.noStep
            throw frame.state.failure(error, R.self, in: frame)
        }
    }
}
