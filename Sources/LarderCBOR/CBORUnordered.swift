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
