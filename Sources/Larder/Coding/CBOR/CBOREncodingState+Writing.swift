import Foundation

extension CBOREncodingState {
    // MARK: Room

    @inline(__always)
    func reserve(_ more: Int) {
        if capacity &- count < more { grow(more) }
    }

    @inline(never)
    private func grow(_ more: Int) {
        let newCapacity = max(capacity * 2, count + more)
        let newBase = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 1)
        newBase.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = newBase
        capacity = newCapacity
    }

    // MARK: Heads

    @inline(__always)
    func write(byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    /// The first byte of an item, and its number in the shortest form.
    @inline(__always)
    func write(head major: UInt8, _ number: UInt64) {
        if number < 24 {
            write(byte: major | UInt8(truncatingIfNeeded: number))
        } else {
            writeLong(head: major, number)
        }
    }

    private func writeLong(head major: UInt8, _ number: UInt64) {
        if number <= 0xFF {
            write(byte: major | 24)
            write(byte: UInt8(truncatingIfNeeded: number))
        } else if number <= 0xFFFF {
            write(byte: major | 25)
            write(bigEndian: UInt16(truncatingIfNeeded: number))
        } else if number <= 0xFFFF_FFFF {
            write(byte: major | 26)
            write(bigEndian: UInt32(truncatingIfNeeded: number))
        } else {
            write(byte: major | 27)
            write(bigEndian: number)
        }
    }

    @inline(__always)
    func write<Number: FixedWidthInteger>(bigEndian number: Number) {
        let size = MemoryLayout<Number>.size
        reserve(size)
        base.storeBytes(of: number.bigEndian, toByteOffset: count, as: Number.self)
        count &+= size
    }

    /// How long a head for `number` is.
    static func headLength(_ number: Int) -> Int {
        if number < 24 { return 1 }
        if number <= 0xFF { return 2 }
        if number <= 0xFFFF { return 3 }
        return number <= 0xFFFF_FFFF ? 5 : 9
    }

    /// Makes a container's head, `length` bytes long so far, hold `count`; what follows moves if it has to.
    func resizeHead(at offset: Int, from length: Int, major: UInt8, count elements: Int) {
        let growth = Self.headLength(elements) - length
        if growth > 0 { insertGap(at: offset + length, growth) }
        let end = count
        count = offset
        write(head: major, UInt64(elements))
        count = end
    }

    /// Moves what stands from `offset` on, and every offset that is remembered, `length` bytes to the back.
    private func insertGap(at offset: Int, _ length: Int) {
        reserve(length)
        memmove(base + offset + length, base + offset, count - offset)
        count += length
        if !detached.isEmpty { shiftDetached(from: offset, by: length, inserting: nil) }
    }

    // MARK: Scalars

    @inline(__always)
    func write(signed value: Int64) {
        if value >= 0 {
            write(head: CBORFormat.Major.unsigned, UInt64(bitPattern: value))
        } else {
            write(head: CBORFormat.Major.negative, UInt64(bitPattern: ~value))
        }
    }

    @inline(__always)
    func write(unsigned value: UInt64) {
        write(head: CBORFormat.Major.unsigned, value)
    }

    func write(wide value: Int128) {
        if value >= 0 {
            write(wide: UInt128(value))
        } else if let number = UInt64(exactly: ~value) {
            write(head: CBORFormat.Major.negative, number)
        } else {
            write(bignum: UInt128(~value), tag: CBORFormat.Tag.negativeBignum)
        }
    }

    func write(wide value: UInt128) {
        if let number = UInt64(exactly: value) {
            write(unsigned: number)
        } else {
            write(bignum: value, tag: CBORFormat.Tag.positiveBignum)
        }
    }

    func write(bignum value: UInt128, tag: UInt64) {
        write(head: CBORFormat.Major.tag, tag)
        let length = 16 - value.leadingZeroBitCount / 8
        write(head: CBORFormat.Major.bytes, UInt64(length))
        for index in (0..<length).reversed() {
            write(byte: UInt8(truncatingIfNeeded: value >> UInt128(index * 8)))
        }
    }

    func write(_ value: Bool) {
        write(byte: value ? CBORFormat.true : CBORFormat.false)
    }

    /// A null; below `layers` single-value containers it says so.
    func writeNil(layers: Int) throws {
        if layers > 0 {
            if rules.imitates { throw nestedNil() }
            for _ in 0..<layers { write(head: CBORFormat.Major.tag, CBORFormat.Tag.wrappedNil) }
        }
        write(byte: CBORFormat.null)
    }

    func write(_ value: Double) throws {
        if !rules.isEmpty { return try writeByRules(value) }
        let narrow = Float(value)
        // Bits are compared, not numbers: a NaN keeps its payload, and zero its sign.
        if Double(narrow).bitPattern == value.bitPattern {
            write(byte: CBORFormat.single)
            write(bigEndian: narrow.bitPattern)
        } else {
            write(byte: CBORFormat.double)
            write(bigEndian: value.bitPattern)
        }
    }

    func write(_ value: Float) throws {
        if !rules.isEmpty { return try writeByRules(Double(value)) }
        write(byte: CBORFormat.single)
        write(bigEndian: value.bitPattern)
    }

    private func writeByRules(_ value: Double) throws {
        var value = value
        if rules.contains(.likeJSON), !value.isFinite {
            throw error(value, "JSON has no number for \(value).")
        }
        if rules.contains(.identity) {
            if value.isNaN { throw error(value, "A NaN equals nothing, itself included, so it cannot be part of a key.") }
            if value == 0 { value = 0 }
        }
        if value.isNaN {
            write(byte: CBORFormat.half)
            write(bigEndian: 0x7E00 as UInt16)
        } else if let bits = CBORHalf.bits(exactly: value) {
            write(byte: CBORFormat.half)
            write(bigEndian: bits)
        } else if Double(Float(value)) == value {
            write(byte: CBORFormat.single)
            write(bigEndian: Float(value).bitPattern)
        } else {
            write(byte: CBORFormat.double)
            write(bigEndian: value.bitPattern)
        }
    }

    // MARK: Text and bytes

    @inline(__always)
    func write(_ text: String) {
        if rules.contains(.identity) { return writeText(CBORText.normalized(text)) }
        writeText(text)
    }

    /// Text that is a value, not a key.
    @inline(__always)
    func write(checked text: String) throws {
        if rules.contains(.likePropertyList), text == "$null" {
            throw error(text, "A property list holds this text in the place of nil.")
        }
        write(text)
    }

    @inline(__always)
    func writeText(_ text: String) {
        let done: Void? = text.utf8.withContiguousStorageIfAvailable { utf8 in
            write(string: UnsafeRawBufferPointer(utf8), CBORFormat.Major.text)
        }
        if done == nil { writeForeign(text) }
    }

    /// Text that lies in the memory of another runtime.
    @inline(never)
    private func writeForeign(_ text: String) {
        var text = text
        text.withUTF8 { write(string: UnsafeRawBufferPointer($0), CBORFormat.Major.text) }
    }

    @inline(__always)
    func write(string bytes: UnsafeRawBufferPointer, _ major: UInt8) {
        reserve(bytes.count &+ 9)
        write(head: major, UInt64(truncatingIfNeeded: bytes.count))
        if let start = bytes.baseAddress {
            (base + count).copyMemory(from: start, byteCount: bytes.count)
            count &+= bytes.count
        }
    }
}
