public import Foundation
internal import LarderSQLite

/// A key as a row has it.
///
/// Texts are in NFC, which is the caller's work.
@usableFromInline
package enum StoredKey: Hashable, Sendable {
    case text(String)
    case integer(Int64)
    /// Any other key, in canonical CBOR.
    case blob(Data)
}

/// What the keys of a cache are, as its row says.
package enum KeyKind: Int64, Sendable {
    case integer = 1
    case text, bytes

    var name: String {
        switch self {
        case .integer: "integers"
        case .text: "texts"
        case .bytes: "values that are neither integers nor texts"
        }
    }
}

extension Statement {
    func bind(_ key: StoredKey, at index: Int32) throws(SQLiteError) {
        switch key {
        case .integer(let number): try bind(number, at: index)
        case .text(let text): try bind(text, at: index)
        case .blob(let bytes): try bind(Array(bytes), at: index)
        }
    }

    func bind(_ bytes: Data?, at index: Int32) throws(SQLiteError) {
        guard let bytes else { return try bindNull(at: index) }
        try bind(Array(bytes), at: index)
    }

    func data(_ column: Int32) -> Data { withBytes(column) { Data($0) } }
}

extension StoredKey: CustomStringConvertible {
    @usableFromInline package var description: String {
        switch self {
        case .text(let text): "\"\(text)\""
        case .integer(let number): "\(number)"
        case .blob(let bytes): "a key of \(bytes.count) bytes"
        }
    }
}

/// A name that is compared as UTF-8 bytes: canonically equal strings are two names.
///
/// Safety: Bytes are read inside the call that lends them, and are not kept.
package struct ExactName: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (a: ExactName, b: ExactName) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
