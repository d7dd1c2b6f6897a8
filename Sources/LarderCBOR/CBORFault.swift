/// The reason and the offset of unreadable bytes.
///
/// The reader throws it, because it is cheap to create and to pass on.
///
/// The containers turn it into a `DecodingError`, with the coding path.
struct CBORFault: Error {
    enum Kind {
        case truncated, reserved, strayStop, wrongChunk, invalidText, duplicateKey, tooDeep, trailing
        case mismatch, null, overflow, invalidDate, invalidURL, invalidUUID, invalidDecimal
    }

    let kind: Kind
    let offset: Int

    init(_ kind: Kind, _ offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    var description: String {
        switch kind {
        case .truncated: "The data ends in the middle of an item"
        case .reserved: "The first byte of an item has a value that the format reserves"
        case .strayStop: "A stop code is in the place of an item"
        case .wrongChunk: "A string of indefinite length holds something else than strings of its kind"
        case .invalidText: "Text that is not UTF-8"
        case .duplicateKey: "A map holds a key twice"
        case .tooDeep:
            "Nested more than \(CBORFormat.maximumDepth) levels deep, or more than the stack of this thread has room for"
        case .trailing: "More data follows after the value"
        case .mismatch: "The item is of another type"
        case .null: "The item is null"
        case .overflow: "The number does not fit"
        case .invalidDate: "Not a date"
        case .invalidURL: "Not a URL"
        case .invalidUUID: "Not a UUID"
        case .invalidDecimal: "Not a decimal number, or one too large"
        }
    }
}
