/// The name of a payload's file: a folder of two hex digits, and the file in it.
struct BlobName: Hashable {
    let folder: String
    let file: String

    /// As rows have it.
    var text: String { folder + "/" + file }

    /// A name that nothing ever had: 96 random bits, so that neither processes nor machines need to agree.
    init(_ label: BlobLabel) {
        var generator = SystemRandomNumberGenerator()
        let digits = Self.hex(generator.next(), count: 16) + Self.hex(generator.next(), count: 8)
        // The first ones: the folders fill evenly.
        folder = String(digits.prefix(2))
        file =
            (label.head.isEmpty ? "" : label.head + "-") + digits
            + (label.fileExtension.isEmpty ? "" : "." + label.fileExtension)
    }

    /// The name that a row has; nil if it is none of ours, as one that leads out of the folder is not.
    init?(_ text: String) {
        let bytes = text.utf8
        guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let (folder, file) = (bytes[..<slash], bytes[bytes.index(after: slash)...])
        guard folder.count == 2, folder.allSatisfy(Self.isDigit), (1...255).contains(file.count),
            !file.contains(where: { $0 == 0 || $0 == UInt8(ascii: "/") }), file.first != UInt8(ascii: ".")
        else { return nil }
        self.folder = String(Substring(folder))
        self.file = String(Substring(file))
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
