/// The part of structured fields (RFC 8941) that the fields of caches need: dictionaries, and the writing of items.
enum StructuredFields {
    /// An item without its parameters.
    enum Item: Equatable {
        case boolean(Bool)
        case integer(Int64)
        case string(String)
        case token(String)
        /// A decimal number, bytes, or an inner list.
        case other
    }

    /// Returns the entries of a dictionary, of several with one name the last; nil if it is none.
    static func dictionary(_ text: String) -> [String: Item]? {
        var reader = Reader(bytes: Array(text.utf8))
        return reader.dictionary()
    }

    /// A text as an item.
    static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result.append("\\") }
            // Others than those of ASCII cannot be in it.
            result.unicodeScalars.append(scalar.value >= 32 && scalar.value < 127 ? scalar : "?")
        }
        return result + "\""
    }

    private struct Reader {
        let bytes: [UInt8]
        var place = 0

        var next: UInt8? { place < bytes.count ? bytes[place] : nil }

        mutating func take(_ byte: Character) -> Bool {
            guard next == byte.asciiValue else { return false }
            place += 1
            return true
        }

        mutating func skip(_ characters: String) {
            while let next, characters.utf8.contains(next) { place += 1 }
        }

        mutating func dictionary() -> [String: Item]? {
            var entries: [String: Item] = [:]
            skip(" ")
            if next == nil { return entries }
            while true {
                guard let name = key() else { return nil }
                var item = Item.boolean(true)
                if take("=") {
                    guard let value = member() else { return nil }
                    item = value
                }
                guard parameters() else { return nil }
                entries[name] = item
                skip(" \t")
                if next == nil { return entries }
                guard take(",") else { return nil }
                skip(" \t")
                if next == nil { return nil }
            }
        }

        private static func isLower(_ byte: UInt8) -> Bool { byte >= 97 && byte <= 122 }
        private static func isDigit(_ byte: UInt8) -> Bool { byte >= 48 && byte <= 57 }
        private static func isLetter(_ byte: UInt8) -> Bool { isLower(byte | 32) }

        private mutating func text(while isPart: (UInt8) -> Bool) -> String {
            let start = place
            while let next, isPart(next) { place += 1 }
            return String(decoding: bytes[start..<place], as: UTF8.self)
        }

        private mutating func key() -> String? {
            guard let next, Self.isLower(next) || next == 42 else { return nil }
            return text { Self.isLower($0) || Self.isDigit($0) || "_-.*".utf8.contains($0) }
        }

        /// Skips parameters; false if they are damaged.
        private mutating func parameters() -> Bool {
            while take(";") {
                skip(" ")
                guard key() != nil else { return false }
                if take("="), item() == nil { return false }
            }
            return true
        }

        private mutating func member() -> Item? {
            guard take("(") else { return item() }
            while true {
                skip(" ")
                if take(")") { return .other }
                guard item() != nil, parameters(), next == 32 || next == 41 else { return nil }
            }
        }

        private mutating func item() -> Item? {
            guard let next else { return nil }
            if next == 34 { return string() }
            if Self.isDigit(next) || next == 45 { return number() }
            if take("?") {
                if take("1") { return .boolean(true) }
                return take("0") ? .boolean(false) : nil
            }
            if take(":") {
                _ = text { Self.isLetter($0) || Self.isDigit($0) || "+/=".utf8.contains($0) }
                return take(":") ? .other : nil
            }
            guard Self.isLetter(next) || next == 42 else { return nil }
            return .token(text { Self.isLetter($0) || Self.isDigit($0) || "!#$%&'*+-.^_`|~:/".utf8.contains($0) })
        }

        private mutating func string() -> Item? {
            place += 1
            var found: [UInt8] = []
            while let byte = next {
                place += 1
                if byte == 34 { return .string(String(decoding: found, as: UTF8.self)) }
                guard byte >= 32, byte < 127 else { return nil }
                if byte == 92 {
                    guard let escaped = next, escaped == 34 || escaped == 92 else { return nil }
                    place += 1
                    found.append(escaped)
                } else {
                    found.append(byte)
                }
            }
            return nil
        }

        private mutating func number() -> Item? {
            let isNegative = take("-")
            let digits = text(while: Self.isDigit)
            if digits.isEmpty { return nil }
            if take(".") {
                let fraction = text(while: Self.isDigit)
                return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
            }
            guard digits.count <= 15, let number = Int64(digits) else { return nil }
            return .integer(isNegative ? -number : number)
        }
    }
}
