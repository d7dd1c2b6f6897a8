/// Arrays and maps.
extension CBORReader {
    /// Reads each element of the next array.
    @inline(__always)
    mutating func elements(
        reserving: (Int) -> Void = { _ in }, _ body: (inout CBORReader) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        try skipTags()
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.array else { throw mismatch(at: start) }
        if head.isIndefinite {
            while try !skipStop() { try body(&self) }
        } else {
            let length = try length(head, at: start)
            reserving(length)
            for _ in 0..<length { try body(&self) }
        }
    }

    /// Reads each pair of the next map; `body` reads the value.
    @inline(__always)
    mutating func pairs(
        reserving: (Int) -> Void = { _ in }, _ body: (String, Int, inout CBORReader) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        try skipTags()
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.map else { throw mismatch(at: start) }
        var left = head.isIndefinite ? -1 : try length(head, at: start, itemsPerElement: 2)
        reserving(max(left, 0))
        while left != 0 {
            if head.isIndefinite {
                if try skipStop() { return }
            } else {
                left &-= 1
            }
            let keyStart = offset
            try body(try key(), keyStart, &self)
        }
    }

    /// Reads a map's key as text: an integer becomes its digits.
    @inline(__always)
    private mutating func key() throws(CBORFault) -> String {
        if try peek() & 0xE0 == CBORFormat.Major.text { return try string() }
        return try otherKey()
    }

    private mutating func otherKey() throws(CBORFault) -> String {
        try skipTags()
        switch try peek() & 0xE0 {
        case CBORFormat.Major.unsigned: return String(try head().number)
        case CBORFormat.Major.negative:
            // -1 - number, of which one has 65 bits.
            let (digits, isWide) = try head().number.addingReportingOverflow(1)
            return isWide ? "-18446744073709551616" : "-\(digits)"
        default: return try string()
        }
    }
}
