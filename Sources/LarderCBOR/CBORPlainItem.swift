package import Foundation

/// An item that fills some bytes completely, and that needs no decoder.
package enum CBORPlainItem: Sendable {
    case text(String)
    case integer(Int64)

    /// - Returns: Nil if the bytes are another item, or an integer that is wider.
    package init?(_ bytes: Data) {
        let scalar = bytes.withUnsafeBytes { buffer -> CBORPlainItem? in
            guard let base = buffer.baseAddress else { return nil }
            var reader = CBORReader(base: base, count: buffer.count, offset: 0)
            do throws(CBORFault) {
                switch try reader.peek() & 0xE0 {
                case CBORFormat.Major.text: return .text(try reader.string())
                case CBORFormat.Major.unsigned, CBORFormat.Major.negative:
                    return .integer(try reader.integer(Int64.self))
                default: return nil
                }
            } catch {
                return nil
            }
        }
        guard let scalar else { return nil }
        self = scalar
    }
}
