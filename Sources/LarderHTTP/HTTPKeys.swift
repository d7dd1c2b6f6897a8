import Foundation

/// The keys under which responses are stored.
enum HTTPKeys {
    /// Returns the key of a URL: without its fragment, with its origin as ``origin(of:)`` has it.
    static func key(_ url: URL, in partition: String?) -> String {
        let (origin, rest) = parts(of: url)
        // The rest as it was written: an escape that is undone could lead to another resource.
        let place = origin + (rest.hasPrefix("/") ? "" : "/") + rest.prefix { $0 != "#" }
        return (partition.map { "\($0.utf8.count):\($0) " } ?? "") + place
    }

    /// The scheme, the host and the port of a URL in lower case, without the usual port.
    static func origin(of url: URL) -> String { parts(of: url).origin }

    private static func parts(of url: URL) -> (origin: String, rest: Substring) {
        let text = url.absoluteString
        let scheme = text.prefix { $0 != ":" }.lowercased()
        let rest = text.dropFirst(scheme.count + 3)
        var authority = rest.prefix { !"/?#".contains($0) }.lowercased()
        for ending in [":", ["http": ":80", "https": ":443"][scheme] ?? ":"] where authority.hasSuffix(ending) {
            authority.removeLast(ending.count)
        }
        return ("\(scheme)://\(authority)", rest.drop { !"/?#".contains($0) })
    }

    /// The host of a URL in lower case.
    static func host(of url: URL) -> String { url.host?.lowercased() ?? "" }

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
