internal import Foundation

/// The names of value files: a part that people can read, random digits, and an extension.
enum FileName {
    /// Returns a name that no file ever had.
    ///
    /// - Parameter hasExtension: A Boolean value that indicates whether what is after the last dot is an extension.
    static func new(_ suggestion: String, hasExtension: Bool) -> String {
        let scalars = composed(suggestion).unicodeScalars
        let dot = hasExtension ? scalars.lastIndex(of: ".") ?? scalars.endIndex : scalars.endIndex
        let (head, end) = (clean(scalars[..<dot], limit: 160), clean(scalars[dot...].dropFirst(), limit: 32))
        let digits = String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt32.random(in: 0 ... .max), radix: 36)
        return (head.isEmpty ? "" : head + "-") + digits + (end.isEmpty ? "" : "." + end)
    }

    /// Returns a name in the form that rows have.
    ///
    /// A disk in the format HFS+ lists names decomposed, and finds a file by either form.
    static func composed(_ name: String) -> String {
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }

    /// Returns a name for the file of a key.
    ///
    /// - Parameter label: The readable part; nil for one that the key gives.
    static func new(of key: StoredKey, _ label: String?) -> String {
        let ofKey =
            switch key {
            case .text(let text): String(text.unicodeScalars.prefix(60))
            case .integer(let number): "\(number)"
            case .blob: ""
            }
        return new(label ?? ofKey, hasExtension: label != nil)
    }

    /// Returns whether `name` is the name of a file inside the folder.
    static func isValid(_ name: String) -> Bool {
        let bytes = name.utf8
        return (1...255).contains(bytes.count) && bytes.first != UInt8(ascii: ".")
            && !bytes.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    }

    /// Replaces what leaves the folder, hides the file or confuses a terminal, and cuts what is too long.
    private static func clean(_ text: Substring.UnicodeScalarView, limit: Int) -> String {
        var (result, size) = (String.UnicodeScalarView(), 0)
        for scalar in text {
            let isKept =
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "_"
                || (!result.isEmpty && "-. ".unicodeScalars.contains(scalar))
            size += isKept ? UTF8.width(scalar) : 1
            if size > limit { break }
            result.append(isKept ? scalar : "_")
        }
        return String(result)
    }
}
