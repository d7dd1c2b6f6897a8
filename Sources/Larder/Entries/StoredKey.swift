public import Foundation

/// A key in the form in which it is stored: two keys are one exactly when these are equal.
@usableFromInline
package enum StoredKey: Hashable, Sendable {
    /// A key that is text, in NFC.
    case text(String)
    /// A key that is an integer of up to 64 bits with a sign.
    case integer(Int64)
    /// Any other key, in deterministic CBOR.
    case blob(Data)
}

extension StoredKey: CustomStringConvertible {
    /// The text, the digits, or the encoding in hexadecimal.
    @usableFromInline package var description: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .blob(let bytes): bytes.map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
        }
    }
}
