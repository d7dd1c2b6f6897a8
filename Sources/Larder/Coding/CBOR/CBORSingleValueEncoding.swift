/// The container of a value that is one item.
struct CBORSingleValueEncoding: SingleValueEncodingContainer {
    let frame: CBOREncodingFrame
    let serial: UInt32

    var codingPath: [any CodingKey] { frame.serial == serial ? frame.codingPath : [] }

    func encodeNil() throws {
        let layers = frame.layers
        try write { try $0.writeNil(layers: layers) }
    }
    func encode(_ value: Bool) throws { try write { $0.write(value) } }
    func encode(_ value: String) throws { try write { try $0.write(checked: value) } }
    func encode(_ value: Double) throws { try write { try $0.write(value) } }
    func encode(_ value: Float) throws { try write { try $0.write(value) } }
    func encode(_ value: Int) throws { try write { $0.write(signed: Int64(value)) } }
    func encode(_ value: Int8) throws { try write { $0.write(signed: Int64(value)) } }
    func encode(_ value: Int16) throws { try write { $0.write(signed: Int64(value)) } }
    func encode(_ value: Int32) throws { try write { $0.write(signed: Int64(value)) } }
    func encode(_ value: Int64) throws { try write { $0.write(signed: value) } }
    func encode(_ value: Int128) throws { try write { $0.write(wide: value) } }
    func encode(_ value: UInt) throws { try write { $0.write(unsigned: UInt64(value)) } }
    func encode(_ value: UInt8) throws { try write { $0.write(unsigned: UInt64(value)) } }
    func encode(_ value: UInt16) throws { try write { $0.write(unsigned: UInt64(value)) } }
    func encode(_ value: UInt32) throws { try write { $0.write(unsigned: UInt64(value)) } }
    func encode(_ value: UInt64) throws { try write { $0.write(unsigned: value) } }
    func encode(_ value: UInt128) throws { try write { $0.write(wide: value) } }

    func encode<T: Encodable>(_ value: T) throws {
        let layers = frame.layers + 1
        try perform { try $0.encode(value, layers: layers) }
    }

    @inline(__always)
    private func write(_ body: (inout CBORWriter) throws -> Void) throws {
        try perform { try body(&$0.writer.pointee) }
    }

    @inline(__always)
    private func perform(_ body: (CBOREncodingState) throws -> Void) throws {
        let frame = frame
        let state = frame.state
        guard frame.serial == serial, frame.isOpen else { throw state.outlived() }
        guard frame.form == .undecided, frame.isInnermost else { throw state.alreadyEncoded(frame) }
        guard !frame.isDetached else { return try state.replaceAside(frame, body) }
        frame.form = .single
        do {
            try body(state)
        } catch {
            let converted = state.converted(error)
            // Another try, in another form, may follow.
            state.close(downTo: frame.slot + 1)
            state.count = frame.header
            frame.form = .undecided
            throw converted
        }
    }
}
