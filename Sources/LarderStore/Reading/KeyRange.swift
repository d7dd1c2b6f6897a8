internal import Foundation

/// The keys of a cache that are read page by page, in the order of their bytes.
///
/// Integers come first, then texts, then other keys.
package struct KeyRange: Sendable {
    /// The beginning of the keys, which are texts; nil for all keys.
    package var prefix: String?
    package var isDescending: Bool

    package init(prefix: String? = nil, isDescending: Bool = false) {
        (self.prefix, self.isDescending) = (prefix, isDescending)
    }

    /// A comparison with a key, at which a page begins.
    enum Start: Int {
        case atOrAbove, above, below, last
    }

    /// Returns where the page after a key begins, or the first one.
    func start(after last: StoredKey?) -> (Start, bound: Bound) {
        if let last { return (isDescending ? .below : .above, .key(last)) }
        switch (prefix, isDescending) {
        case (nil, false): return (.atOrAbove, .key(.integer(.min)))
        case (nil, true): return (.last, .none)
        case (let prefix?, false): return (.atOrAbove, .key(.text(prefix)))
        case (let prefix?, true): return (.below, Self.end(of: prefix))
        }
    }

    enum Bound {
        case none
        case key(StoredKey)
        /// Bytes that are compared as a text, and may be none.
        case bytes([UInt8])
    }

    /// Returns the lowest bound above all texts with a prefix.
    private static func end(of prefix: String) -> Bound {
        var bytes = Array(prefix.utf8)
        // No byte of UTF-8 is the highest one.
        guard let last = bytes.popLast() else { return .key(.blob(.init())) }
        return .bytes(bytes + [last + 1])
    }

    package func contains(_ key: StoredKey) -> Bool {
        guard let prefix else { return true }
        guard case .text(let text) = key else { return false }
        return text.utf8.starts(with: prefix.utf8)
    }

    func isBeyond(_ last: StoredKey, _ key: StoredKey) -> Bool {
        isDescending ? key.precedes(last) : last.precedes(key)
    }
}

extension StoredKey {
    /// Returns whether SQLite sorts this key before another one.
    func precedes(_ other: StoredKey) -> Bool {
        switch (self, other) {
        case (.integer(let a), .integer(let b)): a < b
        case (.text(let a), .text(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
        case (.blob(let a), .blob(let b)): a.lexicographicallyPrecedes(b)
        case (.integer, _): true
        case (.text, .blob): true
        default: false
        }
    }
}
