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
    /// What no key is stored as, and only damage or another program leaves: passes go on behind it, and it can be removed.
    case foreign(ForeignKey)
}

/// A key that is no one's, exactly as the row has it.
@usableFromInline
package enum ForeignKey: Hashable, Sendable {
    case number(Double)
    /// Bytes that are said to be text, and are not UTF-8.
    case text([UInt8])
}

extension StoredKey {
    /// The number of bytes that the key takes as it is stored.
    @usableFromInline package var encodedCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .integer, .foreign(.number): 8
        case .blob(let bytes): bytes.count
        case .foreign(.text(let bytes)): bytes.count
        }
    }
}

extension StoredKey: CustomStringConvertible {
    /// The text, the digits, or the encoding in hexadecimal.
    @usableFromInline package var description: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .blob(let bytes): bytes.map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
        case .foreign(.number(let number)): String(number)
        case .foreign(.text(let bytes)): String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension StoredKey {
    /// Whether a key comes before another one in the order of SQLite: numbers, then texts, then blobs, both by their bytes.
    func precedes(_ other: StoredKey) -> Bool {
        let (own, others) = (rank, other.rank)
        if own != others { return own < others }
        switch (self, other) {
        case (.integer(let one), .integer(let two)): return one < two
        case (.integer, _), (.foreign(.number), _): return number < other.number
        default: return bytes.lexicographicallyPrecedes(other.bytes)
        }
    }

    private var rank: Int {
        switch self {
        case .integer, .foreign(.number): 0
        case .text, .foreign(.text): 1
        case .blob: 2
        }
    }

    private var number: Double {
        switch self {
        case .integer(let number): Double(number)
        case .foreign(.number(let number)): number
        default: 0
        }
    }

    private var bytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .foreign(.text(let bytes)): bytes
        case .blob(let bytes): Array(bytes)
        default: []
        }
    }
}
