internal import Foundation
internal import Larder
internal import LarderStore

/// The names of a cache on the server, which are built once.
struct RedisNames: Sendable {
    let meta, stream, nodes: [UInt8]
    /// What stands in front of a key in the names of its entry, its lease and its mark of a node that waits.
    let entry, lease, wait: [UInt8]

    init(_ prefix: String, _ space: String) {
        func name(_ part: String) -> [UInt8] { Array("\(prefix):{\(space)}:\(part)".utf8) }
        (meta, stream, nodes) = (name("meta"), name("stream"), name("nodes"))
        (entry, lease, wait) = (name("e:"), name("l:"), name("w:"))
    }
}

/// An entry as the server has it: a hash.
struct RedisEntry {
    /// The stamp, the tags, the payload, the extended data, whether there is no value, the checksum of all this, and the end in
    /// milliseconds of the server's clock.
    static let fields = ["s", "g", "p", "x", "n", "c", "d"]

    let stamp: String
    let entry: SharedEntry

    /// - Parameters:
    ///   - values: What the server has of the fields; nil for what is damaged or ends, or what another program has put there.
    ///   - now: The server's clock in milliseconds.
    init?(_ values: [RESPValue], at now: Int64) {
        guard values.count == 7, let stamp = values[0].text, let end = values[6].text.flatMap({ Int64($0) }), end > now,
            let entry = Self.entry(Array(values[1...5]), left: end - now)
        else { return nil }
        (self.stamp, self.entry) = (stamp, entry)
    }

    /// Returns the entry that the fields from the tags to the checksum are; nil if it is damaged.
    static func entry(_ values: [RESPValue], left: Int64) -> SharedEntry? {
        guard values.count == 5, let tags = RedisTags.tags(values[0].data ?? Data()) else { return nil }
        let entry = SharedEntry(
            payload: values[1].data ?? Data(), age: .milliseconds(max(0, left)), tags: tags,
            extendedData: values[2].data, isAbsent: values[3].data != nil)
        return values[4].text == checksum(of: entry) ? entry : nil
    }

    /// Returns whether no removal since its stamp can concern it.
    ///
    /// A removal of tags or of a prefix may concern others: that is left to the script.
    ///
    /// - Parameter facts: The epoch of the cache, the number of its removals, that of the last one of all, and that of the last one of a
    ///   prefix if there was one.
    func isUntouched(by facts: [RESPValue]) -> Bool {
        guard facts.count == 4, let epoch = facts[0].text, let last = facts[1].text.flatMap({ Int64($0) }),
            let lastOfAll = facts[2].text.flatMap({ Int64($0) }),
            let colon = stamp.lastIndex(of: ":"), stamp[..<colon] == epoch,
            let number = Int64(stamp[colon...].dropFirst())
        else { return false }
        let lastOfPrefix = facts[3].text.flatMap { Int64($0) } ?? 0
        return number >= (entry.tags.isEmpty ? max(lastOfAll, lastOfPrefix) : last)
    }

    /// The checksum of all that is stored of an entry but its age.
    static func checksum(of entry: SharedEntry) -> String {
        var sum = entry.payload.withUnsafeBytes { Checksum.of($0) }
        if !entry.tags.isEmpty || entry.isAbsent || entry.extendedData != nil {
            // The number in front tells where the one ends and the next begins.
            var rest = Data("\(sum) \(entry.isAbsent) \(entry.extendedData?.count ?? -1) ".utf8)
            rest += entry.extendedData ?? Data()
            rest += RedisTags.bytes(of: entry.tags)
            sum = rest.withUnsafeBytes { Checksum.of($0) }
        }
        return String(sum, radix: 16)
    }
}

/// Tags as one text: each with its length in front, as in `3:red4:blue`.
enum RedisTags {
    static func bytes(of tags: Set<String>) -> Data {
        tags.sorted().reduce(into: Data()) { $0 += Data("\($1.utf8.count):\($1)".utf8) }
    }

    /// Returns the tags; nil if the bytes are none.
    static func tags(_ bytes: Data) -> Set<String>? {
        var (tags, rest) = (Set<String>(), bytes)
        while !rest.isEmpty {
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")),
                let count = Int(String(decoding: rest[..<colon], as: UTF8.self)), count >= 0,
                rest.distance(from: colon, to: rest.endIndex) > count
            else { return nil }
            let first = colon + 1
            tags.insert(String(decoding: rest[first..<first + count], as: UTF8.self))
            rest = rest[(first + count)...]
        }
        return tags
    }
}
