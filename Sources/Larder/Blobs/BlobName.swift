/// The name of a payload's file: a folder of two hex digits, and the file in it.
struct BlobName: Hashable {
    /// As rows have it.
    let text: String

    var folder: String { String(Substring(text.utf8.prefix(2))) }
    var file: String { String(Substring(text.utf8.dropFirst(3))) }

    /// A name that nothing ever had: 96 random bits, so that neither processes nor machines need to agree.
    init(_ label: BlobLabel) {
        var generator = SystemRandomNumberGenerator()
        let digits = Self.hex(generator.next(), count: 16) + Self.hex(generator.next(), count: 8)
        // The first ones: the folders fill evenly.
        text =
            "\(digits.prefix(2))/" + (label.head.isEmpty ? "" : label.head + "-") + digits
            + (label.fileExtension.isEmpty ? "" : "." + label.fileExtension)
    }

    /// The name that a row has; nil if it is none of ours, as one that leads out of the folder is not.
    init?(_ text: String) {
        var text = text
        let isOurs = text.withUTF8 { bytes in
            guard (4...258).contains(bytes.count), Self.isDigit(bytes[0]), Self.isDigit(bytes[1]) else { return false }
            return bytes[2] == UInt8(ascii: "/") && bytes[3] != UInt8(ascii: ".")
                && !bytes[3...].contains { $0 == 0 || $0 == UInt8(ascii: "/") }
        }
        guard isOurs else { return nil }
        self.text = text
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// The last `count` hex digits of a number.
    static func hex(_ number: UInt64, count: Int) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(unsafeUninitializedCapacity: count) { buffer in
            for place in 0..<count { buffer[place] = digits[Int(number >> (4 * (count - 1 - place)) & 15)] }
            return count
        }
    }
}
