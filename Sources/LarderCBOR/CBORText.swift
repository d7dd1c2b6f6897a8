import Foundation

/// Text in NFC, the one spelling of canonically equal strings.
package enum CBORText {
    /// Returns `text` in NFC: itself in nearly every case, which a look at its bytes shows.
    package static func normalized(_ text: String) -> String {
        isPlain(text) ? text : text.precomposedStringWithCanonicalMapping
    }

    /// Returns whether no character of `text` could be changed by NFC, alone or by its neighbor.
    private static func isPlain(_ text: String) -> Bool {
        let isASCII = text.utf8.withContiguousStorageIfAvailable { bytes in
            var all: UInt8 = 0
            for byte in bytes { all |= byte }
            return all < 0x80
        }
        if isASCII == true { return true }
        return text.unicodeScalars.allSatisfy { isInert($0.value) }
    }

    /// Returns whether a character is in a block whose characters NFC never changes or combines with the one before.
    ///
    /// Characters of other blocks may be stable too, but take the slow path.
    package static func isInert(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0..<0x300: true  // ASCII, Latin, phonetic
        case 0x388...0x482, 0x48A...0x52F: true  // Greek without its doubles, Cyrillic without its marks
        case 0x2010...0x2027, 0x2030...0x205E: true  // dashes, quotation marks
        case 0x20A0...0x20CF: true  // currencies
        case 0x3001...0x3029, 0x3041...0x3096, 0x30A1...0x30FF: true  // Japanese
        case 0x4E00...0x9FFF, 0xAC00...0xD7A3: true  // Han, Hangul syllables
        case 0xFF01...0xFF9D: true  // full and half width
        case 0x1F300...0x1FAFF: true  // pictures
        default: false
        }
    }
}
