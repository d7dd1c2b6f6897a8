package import Foundation

/// A reply of a server, in the second version of its protocol.
package enum RESPValue: Hashable, Sendable {
    case simple(String)
    case error(String)
    case integer(Int64)
    /// Bytes; nil for none.
    case bulk(Data?)
    /// A list; nil for none.
    case array([RESPValue]?)
}

/// The bytes are no reply: the connection is of no use any more.
package struct RESPFault: Error, Hashable {
    package let message: String
}

/// Takes bytes as they arrive, and gives replies once they are whole.
///
/// It keeps what it has read of a list, so a reply in many pieces costs no more than one in one. What a reply announces is never
/// reserved: it takes memory as it arrives, up to a limit.
package struct RESPParser {
    /// The bytes of a string, of which more would be nonsense or an attack.
    private let byteLimit: Int
    private static let (lineLimit, depthLimit, countLimit) = (65_536, 8, 1 << 24)
    /// The bytes of memory that stay reserved between two replies.
    private static let keptCount = 1 << 20

    /// What has arrived: the bytes in front of `start` were read, and those from `end` on are free.
    private var (bytes, start, end) = ([UInt8](), 0, 0)
    /// The lists that are not whole yet, the outermost first.
    private var lists: [(values: [RESPValue], rest: Int)] = []

    package init(byteLimit: Int = 64 << 20) { self.byteLimit = byteLimit }

    package mutating func append(_ more: some Collection<UInt8>) {
        _ = receive(more.count) { free in
            for (place, byte) in zip(free.indices, more) { free[place] = byte }
            return more.count
        }
    }

    /// Lets a closure write what arrives into the memory that it stays in.
    ///
    /// Safety: The room lies in the array, is used within the call alone, and is as large as the closure is told.
    ///
    /// - Parameters:
    ///   - count: The bytes for which there is to be room.
    ///   - body: Gets the room, and returns the number of bytes that it has written, or nil.
    package mutating func receive(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int?) -> Int? {
        // Moved once as many bytes were read as are left.
        if start == end {
            (start, end) = (0, 0)
            if bytes.count > Self.keptCount { bytes = [] }
        } else if start > end - start {
            bytes.removeFirst(start)
            (start, end) = (0, end - start)
        }
        if bytes.count < end + count { bytes += [UInt8](repeating: 0, count: end + count - bytes.count) }
        let received = bytes.withUnsafeMutableBytes { body(UnsafeMutableRawBufferPointer(rebasing: $0[end...])) }
        end += received ?? 0
        return received
    }

    /// Returns the next reply; nil until more bytes arrive.
    package mutating func next() throws(RESPFault) -> RESPValue? {
        while let item = try item() {
            guard var value = item.value else {
                if lists.count == Self.depthLimit {
                    throw RESPFault(message: "a reply has too many lists in each other")
                }
                lists.append(([], item.count))
                continue
            }
            // A value can be the last one of several lists.
            while !lists.isEmpty {
                let last = lists.count - 1
                lists[last].values.append(value)
                lists[last].rest -= 1
                if lists[last].rest > 0 { break }
                value = .array(lists.removeLast().values)
            }
            if lists.isEmpty { return value }
        }
        return nil
    }

    /// Takes a value that is no list, or the head of a list that has `count` values; nil until more bytes arrive.
    private mutating func item() throws(RESPFault) -> (value: RESPValue?, count: Int)? {
        guard start < end, let (line, length) = try line() else { return nil }
        let kind = bytes[start]
        switch kind {
        case UInt8(ascii: "+"): drop(length); return (.simple(String(decoding: line, as: UTF8.self)), 0)
        case UInt8(ascii: "-"): drop(length); return (.error(String(decoding: line, as: UTF8.self)), 0)
        case UInt8(ascii: ":"):
            let number = try number(line)
            drop(length)
            return (.integer(number), 0)
        case UInt8(ascii: "$"):
            let count = try count(line, atMost: byteLimit)
            if count < 0 { drop(length); return (.bulk(nil), 0) }
            let (first, last) = (start + length, start + length + count)
            guard end >= last + 2 else { return nil }
            if bytes[last] != UInt8(ascii: "\r") || bytes[last + 1] != UInt8(ascii: "\n") {
                throw RESPFault(message: "a string does not end where it was announced to")
            }
            drop(length + count + 2)
            return (.bulk(Data(bytes[first..<last])), 0)
        case UInt8(ascii: "*"):
            let count = try count(line, atMost: Self.countLimit)
            drop(length)
            return count < 0 ? (.array(nil), 0) : count == 0 ? (.array([]), 0) : (nil, count)
        default: throw RESPFault(message: "a reply begins with byte \(kind)")
        }
    }

    private mutating func drop(_ count: Int) { start += count }

    /// Returns the first line without its kind, and the number of its bytes with its end.
    private func line() throws(RESPFault) -> (ArraySlice<UInt8>, Int)? {
        guard let last = bytes[start..<end].prefix(Self.lineLimit).firstIndex(of: UInt8(ascii: "\n")) else {
            if end - start >= Self.lineLimit { throw RESPFault(message: "a line has no end") }
            return nil
        }
        guard last > start + 1, bytes[last - 1] == UInt8(ascii: "\r") else {
            throw RESPFault(message: "a line ends without a return")
        }
        return (bytes[start + 1..<last - 1], last - start + 1)
    }

    private func number(_ line: ArraySlice<UInt8>) throws(RESPFault) -> Int64 {
        if let number = Int64(String(decoding: line, as: UTF8.self)) { return number }
        throw RESPFault(message: "a number is none")
    }

    private func count(_ line: ArraySlice<UInt8>, atMost limit: Int) throws(RESPFault) -> Int {
        let count = try number(line)
        if (-1...Int64(limit)).contains(count) { return Int(count) }
        throw RESPFault(message: "a reply announces \(count) bytes or values")
    }
}

/// Commands as they are sent, one after the other.
package struct RESPCommands: Sendable {
    package private(set) var bytes: [UInt8] = []
    /// The number of commands.
    package private(set) var count = 0

    package init() {}

    /// Creates commands of words.
    package init(_ commands: some Sequence<[Data]>) {
        for words in commands {
            begin(words.count)
            for word in words { add(word) }
        }
    }

    /// Begins a command, whose words are added next.
    mutating func begin(_ wordCount: Int) {
        count += 1
        announce(UInt8(ascii: "*"), wordCount)
    }

    mutating func add(_ word: Data) { add([], word) }

    mutating func add(_ word: String) {
        announce(UInt8(ascii: "$"), word.utf8.count)
        bytes += word.utf8
        endLine()
    }

    /// Adds a word of two parts.
    mutating func add(_ first: [UInt8], _ rest: Data) {
        announce(UInt8(ascii: "$"), first.count + rest.count)
        bytes += first
        rest.withUnsafeBytes { bytes.append(contentsOf: $0) }
        endLine()
    }

    private mutating func announce(_ kind: UInt8, _ number: Int) {
        bytes.append(kind)
        bytes += String(number).utf8
        endLine()
    }

    private mutating func endLine() {
        bytes.append(UInt8(ascii: "\r"))
        bytes.append(UInt8(ascii: "\n"))
    }
}
