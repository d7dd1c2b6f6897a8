import Foundation

/// The last step after writing: sorts maps by their encoded keys, and keeps the later of two equal keys.
///
/// It reads only bytes that the encoder wrote: well-formed items, definite lengths, and maps and arrays no deeper than
/// the values.
///
/// Safety: Every offset comes from heads that the encoder itself wrote into the buffer, so each item ends inside it.
/// `permute` copies the pieces before it writes over them.
struct CBORMapSorter {
    /// A Boolean value that indicates whether maps are sorted.
    ///
    /// Equal keys are always reduced to one.
    let sorts: Bool

    /// Sorts the items from `start` to the end, in place.
    func arrange(_ state: CBOREncodingState, from start: Int) throws {
        var offset = start
        while offset < state.count { offset = try arrangeItem(state, at: offset, depth: state.top) }
    }

    /// Sorts the item at `offset`; returns its new end.
    private func arrangeItem(_ state: CBOREncodingState, at offset: Int, depth: Int) throws -> Int {
        let (major, number, start) = Self.head(state, at: offset)
        switch major {
        case CBORFormat.Major.bytes, CBORFormat.Major.text: return start + Int(number)
        case CBORFormat.Major.array:
            try state.checkRoom(depth: depth)
            var end = start
            for _ in 0..<number { end = try arrangeItem(state, at: end, depth: depth + 1) }
            return end
        case CBORFormat.Major.map:
            try state.checkRoom(depth: depth)
            return try arrangeMap(state, at: offset, pairs: Int(number), from: start, depth: depth)
        case CBORFormat.Major.tag: return try arrangeItem(state, at: start, depth: depth)
        default: return start
        }
    }

    private struct Pair {
        var key: Range<Int>
        var end: Int
    }

    private func arrangeMap(
        _ state: CBOREncodingState, at header: Int, pairs count: Int, from start: Int, depth: Int
    ) throws -> Int {
        var pairs: [Pair] = []
        pairs.reserveCapacity(count)
        var end = start
        for _ in 0..<count {
            let valueStart = try arrangeItem(state, at: end, depth: depth + 1)
            let key = end..<valueStart
            end = try arrangeItem(state, at: valueStart, depth: depth + 1)
            pairs.append(Pair(key: key, end: end))
        }
        // A stable order if it matters: the earlier of two equal keys is first.
        let order = pairs.indices.sorted { left, right in
            let comparison = Self.compare(state, pairs[left].key, pairs[right].key)
            return comparison == 0 ? left < right : comparison < 0
        }
        let kept = zip(order, order.dropFirst().map(Optional.some) + [nil]).filter { index, next in
            next.map { Self.compare(state, pairs[index].key, pairs[$0].key) != 0 } ?? true
        }.map(\.0)
        let final = sorts ? kept : kept.sorted()
        if final.count == count, zip(final, final.dropFirst()).allSatisfy({ $0 < $1 }) { return end }

        let ranges = final.map { pairs[$0].key.lowerBound..<pairs[$0].end }
        let newEnd = Self.permute(state, from: start, ranges)
        return close(state, gapFrom: newEnd, to: end, header: header, from: start, count: final.count)
    }

    /// Closes the gap of dropped pairs, and writes the number of remaining pairs into the head.
    private func close(
        _ state: CBOREncodingState, gapFrom newEnd: Int, to end: Int, header: Int, from start: Int, count: Int
    ) -> Int {
        guard newEnd < end else { return end }
        let headLength = CBORWriter.headLength(count)
        let contents = newEnd - start
        memmove(state.base + header + headLength, state.base + start, contents)
        let mapEnd = header + headLength + contents
        memmove(state.base + mapEnd, state.base + end, state.count - end)
        let total = state.count - (end - mapEnd)
        state.count = header
        state.writer.pointee.write(head: CBORFormat.Major.map, UInt64(count))
        state.count = total
        return mapEnd
    }

    /// Moves the pieces `ranges`, in this order, to `start`; returns their end.
    @discardableResult
    static func permute(_ state: CBOREncodingState, from start: Int, _ ranges: [Range<Int>]) -> Int {
        var copy = Data()
        copy.reserveCapacity(ranges.reduce(0) { $0 + $1.count })
        for range in ranges {
            copy.append(contentsOf: UnsafeRawBufferPointer(start: state.base + range.lowerBound, count: range.count))
        }
        copy.withUnsafeBytes { bytes in
            if let source = bytes.baseAddress { (state.base + start).copyMemory(from: source, byteCount: bytes.count) }
        }
        return start + copy.count
    }

    static func isLess(_ state: CBOREncodingState, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
        compare(state, left, right) < 0
    }

    /// Compares bytes; a prefix is less than the whole.
    private static func compare(_ state: CBOREncodingState, _ left: Range<Int>, _ right: Range<Int>) -> Int {
        let order = Int(
            memcmp(state.base + left.lowerBound, state.base + right.lowerBound, min(left.count, right.count)))
        return order == 0 ? left.count - right.count : order
    }

    static func areEqual(_ state: CBOREncodingState, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
        compare(state, left, right) == 0
    }

    /// Returns whether any written value or key is this text.
    static func holds(_ state: CBOREncodingState, text: StaticString) -> Bool {
        var offset = 0
        while offset < state.count {
            let (major, number, start) = head(state, at: offset)
            offset = start
            guard major == CBORFormat.Major.bytes || major == CBORFormat.Major.text else { continue }
            offset += Int(number)
            if major == CBORFormat.Major.text, Int(number) == text.utf8CodeUnitCount,
                memcmp(state.base + start, text.utf8Start, Int(number)) == 0
            {
                return true
            }
        }
        return false
    }

    /// Returns the end of the item at `offset`.
    static func end(_ state: CBOREncodingState, of offset: Int) -> Int {
        var (offset, left) = (offset, 1)
        while left > 0 {
            let (major, number, start) = head(state, at: offset)
            (offset, left) = (start, left - 1)
            switch major {
            case CBORFormat.Major.bytes, CBORFormat.Major.text: offset += Int(number)
            case CBORFormat.Major.array: left += Int(number)
            case CBORFormat.Major.map: left += 2 * Int(number)
            case CBORFormat.Major.tag: left += 1
            default: break
            }
        }
        return offset
    }

    static func head(_ state: CBOREncodingState, at offset: Int) -> (major: UInt8, number: UInt64, start: Int) {
        let first = state.base.load(fromByteOffset: offset, as: UInt8.self)
        let info = Int(first & 0x1F)
        if info < 24 { return (first & 0xE0, UInt64(info), offset + 1) }
        let length = 1 << (info - 24)
        var number: UInt64 = 0
        for index in 1...length {
            number = number << 8 | UInt64(state.base.load(fromByteOffset: offset + index, as: UInt8.self))
        }
        return (first & 0xE0, number, offset + 1 + length)
    }
}

/// A collection of the standard library whose order differs from process to process.
protocol CBORUnordered {
    /// Writes the elements in the order of their encoded bytes; false if the collection should write itself.
    func writeSorted(_ state: CBOREncodingState) throws -> Bool
}

extension Set: CBORUnordered {
    func writeSorted(_ state: CBOREncodingState) throws -> Bool {
        guard Element.self is any Encodable.Type else { return false }
        try state.writeSorted(self, itemsPerElement: 1) { element in
            if let element = element as? any Encodable { try state.encode(element) }
        }
        return true
    }
}

extension Dictionary: CBORUnordered {
    func writeSorted(_ state: CBOREncodingState) throws -> Bool {
        // These become maps, which the last step sorts.
        if Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type {
            return false
        }
        guard Key.self is any Encodable.Type, Value.self is any Encodable.Type else { return false }
        try state.writeSorted(self, itemsPerElement: 2) { element in
            if let key = element.key as? any Encodable { try state.encode(key) }
            if let value = element.value as? any Encodable { try state.encode(value) }
        }
        return true
    }
}

extension CBOREncodingState {
    fileprivate func writeSorted<Elements: Collection>(
        _ elements: Elements, itemsPerElement: Int, _ writeElement: (Elements.Element) throws -> Void
    ) throws {
        guard hasRoom else { throw CBORRefusal.tooDeep(Elements.self) }
        // A frame of its own, so that depth is counted.
        let frame = push(.value)
        defer { close(downTo: frame.slot) }
        frame.form = .single
        writer.pointee.write(head: CBORFormat.Major.array, UInt64(elements.count * itemsPerElement))
        var ranges: [Range<Int>] = []
        ranges.reserveCapacity(elements.count)
        let start = count
        let sorter = CBORMapSorter(sorts: true)
        for element in elements {
            let elementStart = count
            try writeElement(element)
            try sorter.arrange(self, from: elementStart)
            ranges.append(elementStart..<count)
        }
        ranges.sort { CBORMapSorter.isLess(self, $0, $1) }
        CBORMapSorter.permute(self, from: start, ranges)
    }
}
