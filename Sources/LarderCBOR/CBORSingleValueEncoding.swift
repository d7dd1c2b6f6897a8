/// The container of a value that is one item.
struct CBORSingleValueEncoding: SingleValueEncodingContainer {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    func encodeNil() throws {
        let layers = frame.layers
        try write { try $0.writeNil(layers: layers) }
    }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive) throws {
        try write { try value.encode(to: &$0) }
    }

    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: Int128) throws { try write { $0.write(integer: value) } }
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    func encode(_ value: UInt128) throws { try write { $0.write(integer: value) } }

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
        let state = frame.state
        guard frame.isOpen else { throw state.lateUseError() }
        guard frame.form == .undecided, frame.isInnermost || frame.isDetached else { throw state.alreadyEncoded(frame) }
        guard !frame.isDetached else { return try state.replaceAside(frame, body) }
        frame.form = .single
        do {
            try body(state)
        } catch {
            let converted = state.errorWithPath(error)
            // Another try, in another form, may follow.
            state.close(downTo: frame.slot + 1)
            state.count = frame.header
            frame.form = .undecided
            throw converted
        }
    }
}
