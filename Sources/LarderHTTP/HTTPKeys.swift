import Foundation

/// What a URL says of where a response belongs.
///
/// It is cut from the text once for each request: the parts of a `URL` take longer than the rest of a hit.
struct HTTPPlace {
    /// The URL without its fragment: its origin in lower case and without its usual port, and the rest as it was written.
    ///
    /// An escape that is undone could lead to another resource.
    let key: String
    /// The scheme, the host and the port.
    let origin: String
    /// The host in lower case; empty if there is none.
    let host: String
    /// A Boolean value that indicates whether the URL names a user.
    let hasUser: Bool

    init(_ url: URL) {
        let text = url.absoluteString
        let bytes = text.utf8
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let scheme = text[..<colon].lowercased()
        let start = bytes.index(colon, offsetBy: 3, limitedBy: bytes.endIndex) ?? bytes.endIndex
        let isEnd: (UInt8) -> Bool = { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let end = bytes[start...].firstIndex(where: isEnd) ?? bytes.endIndex
        var authority = text[start..<end].lowercased()
        if authority.utf8.contains(UInt8(ascii: ":")) {
            for ending in [":", scheme == "https" ? ":443" : scheme == "http" ? ":80" : ":"]
            where authority.hasSuffix(ending) { authority.removeLast(ending.count) }
        }
        let stop = bytes[end...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        let rest = text[end..<stop]
        origin = "\(scheme)://\(authority)"
        key = origin + (rest.utf8.first == UInt8(ascii: "/") ? "" : "/") + rest
        hasUser = authority.utf8.contains(UInt8(ascii: "@"))
        // What looks like one may be a part of a path or a fragment.
        let isAbsolute = !scheme.isEmpty && Self.isPlain(scheme) && text[colon..<start] == "://"
        host = !isAbsolute ? "" : Self.isPlain(authority) ? authority : url.host?.lowercased() ?? ""
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            byte >= 97 && byte <= 122 || byte >= 48 && byte <= 57 || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: "-")
        }
    }
}

/// The keys under which responses are stored.
enum HTTPKeys {
    /// Returns the key of a URL in a part of the cache.
    static func key(_ place: HTTPPlace, in partition: String?) -> String {
        partition.map { "\($0.utf8.count):\($0) \(place.key)" } ?? place.key
    }

    /// Returns the key of the response to a request among those of its URL, which hides the values of its fields.
    static func variant(_ names: [String], of request: HTTPRequest, under key: String) -> String {
        if names.isEmpty { return key }
        var text = ""
        for name in names {
            let value = request.field(name).map { normalized($0, of: name) }
            text += "\(name.utf8.count):\(name)" + (value.map { "\($0.utf8.count):\($0)" } ?? "-")
        }
        return key + " \(SHA256.hash(of: Array(text.utf8)))"
    }

    /// Returns a value without the spaces between its elements, and without case where that means nothing.
    private static func normalized(_ value: String, of name: String) -> String {
        let text = FieldList.elements(of: value).joined(separator: ",")
        return ["accept-charset", "accept-encoding", "accept-language"].contains(name) ? text.lowercased() : text
    }
}

/// SHA-256, so that no request can be made that has the key of another one.
enum SHA256 {
    private static let primes: [UInt64] = {
        var (found, number) = ([UInt64](), UInt64(2))
        while found.count < 64 {
            if found.allSatisfy({ number % $0 != 0 }) { found.append(number) }
            number += 1
        }
        return found
    }()

    /// The first 32 bits behind the point of a root.
    private static func fraction(_ root: Double) -> UInt32 {
        UInt32(truncatingIfNeeded: UInt64((root - root.rounded(.down)) * 4_294_967_296))
    }

    private static let constants = primes.map { fraction(cbrt(Double($0))) }
    private static let start = primes.prefix(8).map { fraction(Double($0).squareRoot()) }

    /// Returns the hash as hexadecimal digits.
    static func hash(of bytes: [UInt8]) -> String {
        var padded = bytes + [0x80]
        padded += Array(repeating: 0, count: (119 - bytes.count % 64) % 64)
        padded += withUnsafeBytes(of: UInt64(bytes.count * 8).bigEndian, Array.init)
        var state = start
        for block in stride(from: 0, to: padded.count, by: 64) { mix(padded[block..<block + 64], into: &state) }
        return state.map { String(repeating: "0", count: $0.leadingZeroBitCount / 4) + String($0, radix: 16) }
            .map { String($0.suffix(8)) }.joined()
    }

    private static func mix(_ block: ArraySlice<UInt8>, into state: inout [UInt32]) {
        func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }
        var words: [UInt32] = stride(from: block.startIndex, to: block.endIndex, by: 4).map { place in
            block[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for place in 16..<64 {
            let (a, b) = (words[place - 15], words[place - 2])
            let low = rotated(a, 7) ^ rotated(a, 18) ^ a >> 3
            let high = rotated(b, 17) ^ rotated(b, 19) ^ b >> 10
            words.append(words[place - 16] &+ low &+ words[place - 7] &+ high)
        }
        var s = state
        for place in 0..<64 {
            let choice = s[4] & s[5] ^ ~s[4] & s[6]
            let sum = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)
            let first = s[7] &+ sum &+ choice &+ constants[place] &+ words[place]
            let majority = s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2]
            let second = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) &+ majority
            s = [first &+ second, s[0], s[1], s[2], s[3] &+ first, s[4], s[5], s[6]]
        }
        for place in state.indices { state[place] = state[place] &+ s[place] }
    }
}
