/// The container of a map.
struct CBORKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }

    func encodeNil(forKey key: Key) throws { try frame.write(key) { try $0.writeNil(layers: 0) } }

    @inline(__always)
    func encode<Primitive: CBORPrimitive>(_ value: Primitive, forKey key: Key) throws {
        try frame.write(key) { try value.encode(to: &$0) }
    }

    func encode(_ value: Int128, forKey key: Key) throws { try frame.write(key) { $0.write(wide: value) } }
    func encode(_ value: UInt128, forKey key: Key) throws { try frame.write(key) { $0.write(wide: value) } }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        try frame.encode(value, key)
    }

    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
        guard let value else { return }
        // An optional in an optional: the outer one is there, so the key is, and only CBOR can tell.
        if frame.writer.pointee.rules.imitates, CBOROptionals.isNil(value) {
            return try frame.write(key) { _ in throw CBORRefusal.nestedNil }
        }
        try frame.encode(value, key)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        let child = frame.openNested(key: key.stringValue, noting: key, as: .map)
        if child.isOpen, child.form == .undecided {
            child.beginMap()
            child.keyType = ObjectIdentifier(keyType)
        }
        return child.keyedContainer(keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        let child = frame.openNested(key: key.stringValue, noting: key, as: .array)
        return CBORUnkeyedEncoding(nested: child)
    }

    func superEncoder() -> any Encoder {
        let child = frame.openNested(key: "super", noting: CBORPathKey.superclass)
        child.isShared = true
        return CBOREncoding(frame: child, serial: child.serial)
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        let child = frame.openNested(key: key.stringValue, noting: key)
        child.isShared = true
        return CBOREncoding(frame: child, serial: child.serial)
    }
}

extension CBOREncodingFrame {
    /// Writes one pair.
    @inline(__always)
    func write<Key: CodingKey>(_ key: Key, _ body: (inout CBORWriter) throws -> Void) throws {
        guard openSlot == writer.pointee.top &- 1 else {
            writer.pointee.mayHaveDuplicates = true
            return try state.writeAside(self, key: key.stringValue) { try body(&$0.writer.pointee) }
        }
        begin(key)
        do {
            try body(&writer.pointee)
        } catch {
            throw undo(error)
        }
    }

    /// Writes one pair whose value is of any type.
    @inline(__always)
    func encode<T: Encodable, Key: CodingKey>(_ value: T, _ key: Key) throws {
        guard openSlot == writer.pointee.top &- 1 else {
            writer.pointee.mayHaveDuplicates = true
            return try state.writeAside(self, key: key.stringValue) { try $0.encode(value) }
        }
        begin(key)
        do {
            try state.encode(value, in: self)
        } catch {
            throw undo(error)
        }
    }

    @inline(__always)
    private func begin<Key: CodingKey>(_ key: Key) {
        element = writer.pointee.count
        count &+= 1
        writer.pointee.write(key.stringValue)
        note(key)
    }

    /// Takes back the element that failed; returns its error, with the path.
    func undo(_ error: any Error) -> any Error {
        let converted = state.converted(error)
        state.rollBack(self)
        return converted
    }

    /// Remembers that `key` was written and, where it may have been before, that the last pass has to look.
    @inline(__always)
    func note<Key: CodingKey>(_ key: Key) {
        if MemoryLayout<Key>.size == 1 {
            // The keys of an enum: one byte that differs where the case does.
            let number = unsafeBitCast(key, to: UInt8.self)
            if number < 64 { return note(bit: 1 << UInt64(number)) }
        }
        noteText(ofType: ObjectIdentifier(Key.self))
    }

    @inline(__always)
    private func note(bit: UInt64) {
        if seenKeys & bit != 0 { writer.pointee.mayHaveDuplicates = true }
        seenKeys |= bit
    }

    /// Any other key: a bit chosen by its text, so that two keys may meet in one and cause a look for nothing.
    private func noteText(ofType type: ObjectIdentifier) {
        // A dictionary's keys are distinct by themselves.
        if type == CBORKeyTypes.dictionary { return }
        let last = writer.pointee.base.load(fromByteOffset: writer.pointee.count - 1, as: UInt8.self)
        let length = writer.pointee.count - element
        note(bit: 1 << UInt64((Int(last) &* 7 &+ length) & 63))
    }

    /// Opens a container inside this one, under `key`.
    ///
    /// - Parameter form: What it is known to become; a container of this form that is there already is opened again.
    func openNested<Key: CodingKey>(
        key text: String?, noting key: Key, as form: Form = .undecided
    ) -> CBOREncodingFrame {
        let state = state
        guard openSlot == writer.pointee.top &- 1 || state.makeInnermost(self) else {
            writer.pointee.mayHaveDuplicates = true
            return state.openAside(self, key: text, as: form)
        }
        if let text, form != .undecided, noteOpening(key, text),
            let earlier = state.reopen(in: self, key: text, as: form)
        {
            return earlier
        }
        element = writer.pointee.count
        count &+= 1
        if let text {
            writer.pointee.write(text)
            note(key)
        }
        return state.pushNested(in: self)
    }
}

/// Types of keys that are known to the encoder.
enum CBORKeyTypes {
    /// The key type of the standard library's dictionaries, which has no public name: a dictionary tells.
    static let dictionary: ObjectIdentifier? = {
        let state = CBOREncodingState()
        defer { state.finish() }
        let frame = state.push(.value)
        do {
            try [String: Int]().encode(to: CBOREncoding(frame: frame, serial: frame.serial))
        } catch {
            return nil
        }
        return frame.keyType
    }()
}
