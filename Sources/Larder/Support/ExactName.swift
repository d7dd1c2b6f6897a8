/// A name that is compared as UTF-8 bytes: canonically equal strings are two names.
package struct ExactName: Hashable, Sendable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package static func == (a: ExactName, b: ExactName) -> Bool {
        a.text.utf8.elementsEqual(b.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
    }
}
