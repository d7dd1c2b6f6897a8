extension CBORReader {
    /// The numbers of missing items for a container of indefinite length.
    private enum Open {
        static let array = -1
        static let mapBeforeKey = -2
        static let mapBeforeValue = -3
    }

    /// Returns the end of the item at `offset`.
    func endOfItem(at offset: Int) throws(CBORFault) -> Int {
        var reader = at(offset)
        try reader.skip()
        return reader.offset
    }

    /// Skips the next item, with all its contents.
    @inline(__always)
    mutating func skip() throws(CBORFault) {
        // Most items are short: a small number, a short string, a simple value.
        let first = try peek()
        if first & 0x1F < 24 {
            switch first & 0xE0 {
            case CBORFormat.Major.unsigned, CBORFormat.Major.negative, CBORFormat.Major.simple:
                offset &+= 1
                return
            case CBORFormat.Major.bytes, CBORFormat.Major.text:
                let end = offset &+ 1 &+ Int(first & 0x1F)
                guard end <= count else { throw CBORFault(.truncated, offset) }
                offset = end
                return
            default: break
            }
        }
        try skipAny()
    }

    /// Skips the next item without recursion.
    private mutating func skipAny() throws(CBORFault) {
        // Each item takes a byte, so the number of missing items may never exceed the bytes that are left.
        var missing = 1
        // The missing items of the containers around the current one.
        var outer: [Int] = []
        while true {
            while missing == 0 {
                guard let last = outer.popLast() else { return }
                missing = last
            }
            if missing < 0, try skipStop() {
                guard missing != Open.mapBeforeValue, let last = outer.popLast() else {
                    throw CBORFault(.strayStop, offset - 1)
                }
                missing = last
                continue
            }
            try skipTags()
            switch missing {
            case Open.array: break
            case Open.mapBeforeKey: missing = Open.mapBeforeValue
            case Open.mapBeforeValue: missing = Open.mapBeforeKey
            default: missing -= 1
            }
            let start = offset
            let head = try head()
            switch head.major {
            case CBORFormat.Major.bytes, CBORFormat.Major.text:
                if head.isIndefinite {
                    try skipChunks(head.major)
                } else {
                    offset += try length(head, at: start)
                }
            case CBORFormat.Major.array, CBORFormat.Major.map:
                let isMap = head.major == CBORFormat.Major.map
                if head.isIndefinite {
                    outer.append(missing)
                    missing = isMap ? Open.mapBeforeKey : Open.array
                } else {
                    let items = try length(head, at: start, itemsPerElement: isMap ? 2 : 1) * (isMap ? 2 : 1)
                    if missing < 0 {
                        outer.append(missing)
                        missing = items
                    } else {
                        guard missing + items <= count - offset else { throw CBORFault(.truncated, start) }
                        missing += items
                    }
                }
            default: break
            }
        }
    }

    private mutating func skipChunks(_ major: UInt8) throws(CBORFault) {
        while try !skipStop() {
            let start = offset
            let chunk = try head()
            guard chunk.major == major, !chunk.isIndefinite else { throw CBORFault(.wrongChunk, start) }
            offset += try length(chunk, at: start)
        }
    }
}
