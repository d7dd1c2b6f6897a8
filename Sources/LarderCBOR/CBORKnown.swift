import Foundation

/// A type that the decoder reads by what it is, without its `init(from:)`.
protocol CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Self
}

extension Date: CBORKnown {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Date { try reader.date() }
}

extension UUID: CBORKnown {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> UUID { try reader.uuid() }
}

extension URL: CBORKnown {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> URL { try reader.url() }
}

extension Data: CBORKnown {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Data { try reader.bytes(as: Data.self) }
}

extension Decimal: CBORKnown {
    @inline(__always)
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> Decimal { try reader.decimal() }
}

// MARK: Collections

extension Array: CBORKnown where Element: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> [Element] {
        // A byte string, most often.
        if Element.self == UInt8.self { return try reader.bytes(as: [UInt8].self) as! [Element] }
        var values: [Element] = []
        try reader.elements(reserving: { values.reserveCapacity(CBORReader.capacity($0, of: Element.self)) }) {
            (reader: inout CBORReader) throws(CBORFault) in
            values.append(try Element.decoded(from: &reader))
        }
        return values
    }
}

extension Dictionary: CBORKnown where Key == String, Value: CBORKnown {
    static func decoded(from reader: inout CBORReader) throws(CBORFault) -> [String: Value] {
        var values: [String: Value] = [:]
        try reader.pairs(reserving: { values.reserveCapacity(CBORReader.capacity($0, of: (String, Value).self)) }) {
            (key: String, offset: Int, reader: inout CBORReader) throws(CBORFault) in
            let value = try Value.decoded(from: &reader)
            guard values.updateValue(value, forKey: key) == nil else { throw CBORFault(.duplicateKey, offset) }
        }
        return values
    }
}

extension CBORReader {
    /// No more elements are made room for at once than fit here: a short array may say it is long.
    private static let reservedBytes = 1 << 16

    static func capacity<Element>(_ count: Int, of type: Element.Type) -> Int {
        min(count, max(reservedBytes / max(MemoryLayout<Element>.stride, 1), 16))
    }
}
