/// The part of a file's name that people read: what stands before our own part, and the extension behind it.
///
/// Any text will do. What would lead out of the folder, hide the file or confuse a terminal is replaced, and what is too
/// long cut off.
package struct BlobLabel: Hashable, Sendable {
    /// No readable part.
    package static let none = BlobLabel(head: "")

    let head: String
    let fileExtension: String

    /// How long the head may be in UTF-8.
    ///
    /// With the extension, 24 digits and two signs of our own a name has 235 bytes at most, of the 255 that are allowed.
    package static let headLimit = 177
    package static let extensionLimit = 32

    package init(head: String, fileExtension: String = "") {
        self.head = Self.clean(head, upTo: Self.headLimit)
        self.fileExtension = Self.clean(fileExtension, upTo: Self.extensionLimit)
    }

    /// Takes the extension, if it has one, from behind the last dot of a name that somebody suggests.
    package init(suggestion: String) {
        let scalars = suggestion.unicodeScalars
        guard let dot = scalars.lastIndex(of: "."), dot != scalars.startIndex else {
            self.init(head: suggestion)
            return
        }
        self.init(head: String(scalars[..<dot]), fileExtension: String(scalars[scalars.index(after: dot)...]))
    }

    private static func clean(_ text: String, upTo limit: Int) -> String {
        var result = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            let scalar = isHarmless(scalar, atStart: result.isEmpty) ? scalar : "_"
            count += UTF8.width(scalar)
            if count > limit { break }
            result.append(scalar)
        }
        return String(result)
    }

    private static func isHarmless(_ scalar: Unicode.Scalar, atStart: Bool) -> Bool {
        switch scalar {
        // A colon is the separator of old on Apple's systems, a backslash on others.
        case "/", "\\", ":": return false
        // It hides a file, and two of them are the folder above. A dash begins an option of a command.
        case ".", "-": return !atStart
        default: break
        }
        // Line ends, terminal codes and marks that turn the direction of writing.
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: false
        default: true
        }
    }
}
