internal import Foundation
internal import LarderStore

/// How keys, removals and names are written for a tier.
enum SharedForm {
    /// Returns the bytes of a key: `t` and its text, `i` and its digits, or `b` and its encoding.
    static func bytes(of key: StoredKey) -> Data {
        switch key {
        case .text(let text): Data("t\(text)".utf8)
        case .integer(let number): Data("i\(number)".utf8)
        case .blob(let bytes): Data("b".utf8) + bytes
        }
    }

    /// Returns the key that bytes are the form of; nil if they are of none.
    static func key(_ bytes: Data) -> StoredKey? {
        let rest = String(decoding: bytes.dropFirst(), as: UTF8.self)
        // What is no text has other bytes now.
        guard rest.utf8.elementsEqual(bytes.dropFirst()) else {
            return bytes.first == UInt8(ascii: "b") ? .blob(Data(bytes.dropFirst())) : nil
        }
        switch bytes.first {
        case UInt8(ascii: "t"): return .text(rest)
        case UInt8(ascii: "i"): return Int64(rest).map { .integer($0) }
        case UInt8(ascii: "b"): return .blob(Data(bytes.dropFirst()))
        default: return nil
        }
    }

    /// Returns the bytes of a removal: `k` and its key, `t` and its tag, `p` and its prefix, or `a`.
    static func bytes(of removal: SharedRemoval) -> [UInt8] {
        switch removal {
        case .key(let key): Array("k".utf8) + key
        case .tag(let tag): Array("t\(tag)".utf8)
        case .prefix(let prefix): Array("p".utf8) + prefix
        case .all: Array("a".utf8)
        }
    }

    /// Returns the removal that bytes are the form of; that of everything if they are damaged.
    static func removal(_ bytes: [UInt8]) -> SharedRemoval {
        switch bytes.first {
        case UInt8(ascii: "k"): .key(Data(bytes.dropFirst()))
        case UInt8(ascii: "t"): .tag(String(decoding: bytes.dropFirst(), as: UTF8.self))
        case UInt8(ascii: "p"): .prefix(Data(bytes.dropFirst()))
        default: .all
        }
    }

    /// Returns the name of the entries of a cache in a tier, which is that of no other cache.
    static func space(_ cache: CacheDeclaration) -> SharedSpace {
        let parts = [cache.name, cache.version, cache.codec].map {
            $0.replacing("%", with: "%25").replacing("/", with: "%2F")
        }
        return SharedSpace(parts.joined(separator: "/"))
    }
}
