internal import Foundation
internal import Larder

/// CBOR as a text that is JSON wherever JSON can say it.
///
/// Bytes are `h'…'`, a tag stands before its value as `1(…)`, and keys may be anything: the diagnostic notation.
struct CBORText {
    private var bytes: Data.SubSequence

    /// Returns the text of an item; nil if the bytes are not one item of CBOR.
    static func text(of bytes: Data, indented: Bool = false) -> String? {
        var reader = CBORText(bytes: bytes[...])
        let text = reader.item(depth: 0, indented: indented)
        return reader.bytes.isEmpty ? text : nil
    }

    private mutating func argument(_ info: UInt8) -> UInt64? {
        switch info {
        case 0..<24: return UInt64(info)
        case 24...27:
            let count = 1 << Int(info - 24)
            guard bytes.count >= count else { return nil }
            defer { bytes.removeFirst(count) }
            return bytes.prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        default: return nil
        }
    }

    private mutating func item(depth: Int, indented: Bool) -> String? {
        guard depth < 256, let first = bytes.popFirst() else { return nil }
        let (major, info) = (first >> 5, first & 31)
        if major == 7 { return simple(info) }
        if info == 31 { return indefinite(major, depth, indented) }
        guard let argument = argument(info) else { return nil }
        switch major {
        case 0: return "\(argument)"
        case 1: return argument == .max ? "-18446744073709551616" : "-\(argument + 1)"
        case 2: return take(argument).map { "h'\(Text.hexadecimal($0))'" }
        case 3: return take(argument).map { Self.quoted(String(decoding: $0, as: UTF8.self)) }
        case 4: return list(argument, "[", "]", depth, indented) { $0.item(depth: depth + 1, indented: indented) }
        case 5: return list(argument, "{", "}", depth, indented) { $0.pair(depth, indented) }
        default: return item(depth: depth + 1, indented: indented).map { "\(argument)(\($0))" }
        }
    }

    private mutating func take(_ count: UInt64) -> Data? {
        guard count <= UInt64(bytes.count) else { return nil }
        defer { bytes.removeFirst(Int(count)) }
        return Data(bytes.prefix(Int(count)))
    }

    private mutating func pair(_ depth: Int, _ indented: Bool) -> String? {
        guard let key = item(depth: depth + 1, indented: false),
            let value = item(depth: depth + 1, indented: indented)
        else { return nil }
        return "\(key): \(value)"
    }

    private mutating func list(
        _ count: UInt64?, _ begin: String, _ end: String, _ depth: Int, _ indented: Bool,
        _ element: (inout CBORText) -> String?
    ) -> String? {
        var parts: [String] = []
        while count.map({ UInt64(parts.count) < $0 }) ?? (bytes.first != 0xFF) {
            guard let part = element(&self) else { return nil }
            parts.append(part)
        }
        if count == nil { bytes.removeFirst() }
        if parts.isEmpty || !indented { return begin + parts.joined(separator: ", ") + end }
        let space = String(repeating: "  ", count: depth)
        return begin + "\n" + parts.map { space + "  " + $0 }.joined(separator: ",\n") + "\n" + space + end
    }

    private mutating func indefinite(_ major: UInt8, _ depth: Int, _ indented: Bool) -> String? {
        switch major {
        case 4: return list(nil, "[", "]", depth, indented) { $0.item(depth: depth + 1, indented: indented) }
        case 5: return list(nil, "{", "}", depth, indented) { $0.pair(depth, indented) }
        case 2, 3: return list(nil, "(_ ", ")", depth, false) { $0.item(depth: depth + 1, indented: false) }
        default: return nil
        }
    }

    private mutating func simple(_ info: UInt8) -> String? {
        switch info {
        case 20: return "false"
        case 21: return "true"
        case 22: return "null"
        case 23: return "undefined"
        case 25...27:
            guard let bits = argument(info) else { return nil }
            switch info {
            case 25: return "\(CBORHalf.double(bits: UInt16(bits)))"
            case 26: return "\(Float(bitPattern: UInt32(bits)))"
            default: return "\(Double(bitPattern: bits))"
            }
        default: return argument(info).map { "simple(\($0))" }
        }
    }

    /// A text as JSON has it.
    static func quoted(_ text: String) -> String {
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return "\"" + Text.visible(escaped.replacing("\n", with: "\\n").replacing("\t", with: "\\t")) + "\""
    }
}
