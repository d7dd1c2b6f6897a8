internal import LarderStore

/// What the headers of a cache say together.
struct Survey {
    private(set) var (count, size, expired, unread, pinned, files) = (0, Int64(0), 0, 0, 0, 0)
    /// The last access and the size of each entry that is served and can be evicted, the latest first.
    private(set) var uses: [(accessedAt: Int64, size: Int64)] = []
    /// What is served and cannot be evicted.
    private(set) var held: (count: Int, size: Int64) = (0, 0)
    private var expiredSize: Int64 = 0
    /// The number of entries by size: up to 256 bytes, four times that, and so on.
    private(set) var bySize = [Int](repeating: 0, count: Self.sizes.count)
    /// The number of entries by age.
    private(set) var byAge = [Int](repeating: 0, count: Self.ages.count)
    /// The largest entries, and those that were read longest ago.
    private(set) var (largest, coldest): ([EntryHeader], [EntryHeader]) = ([], [])

    static let sizes: [Int64] = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, .max]
    static let ages: [Int64] = [1, 6, 24, 72, 168, 720, 2_160, 8_760].map { $0 * 3_600_000 } + [.max]

    /// - Parameter shown: The number of entries in ``largest`` and ``coldest``.
    init(_ cache: OpenedCache, shown: Int = 0) throws {
        try cache.forEachHeader { header in
            count += 1
            size = size.addingSaturated(header.size)
            bySize[Self.sizes.firstIndex { header.size <= $0 } ?? 0] += 1
            byAge[Self.ages.firstIndex { cache.now.subtractingSaturated(header.writtenAt) <= $0 } ?? 0] += 1
            if header.meta.isPinned { pinned += 1 }
            if header.end < cache.now {
                expired += 1
                expiredSize = expiredSize.addingSaturated(header.size)
            } else if header.meta.isPinned {
                held = (held.count + 1, held.size.addingSaturated(header.size))
            } else {
                uses.append((header.accessedAt, header.size))
            }
            if header.accessedAt == header.writtenAt { unread += 1 }
            if header.file != nil { files += 1 }
            if shown > 0 {
                Self.insert(header, into: &largest, shown) { $0.size > $1.size }
                Self.insert(header, into: &coldest, shown) { $0.accessedAt < $1.accessedAt }
            }
            return true
        }
        uses.sort { $0.accessedAt > $1.accessedAt }
    }

    private static func insert(
        _ header: EntryHeader, into list: inout [EntryHeader], _ limit: Int,
        _ precedes: (EntryHeader, EntryHeader) -> Bool
    ) {
        if let last = list.last, list.count == limit, !precedes(header, last) { return }
        list.insert(header, at: list.firstIndex { precedes(header, $0) } ?? list.count)
        if list.count > limit { list.removeLast() }
    }

    /// For a number of limits up to the present, what would stay, and the last access of the coldest entry of that.
    func limits(_ steps: Int = 10) -> [(count: Int, size: Int64, coldest: Int64)] {
        var (found, sum, next): ([(Int, Int64, Int64)], Int64, Int) = ([], held.size, 1)
        for (index, use) in uses.enumerated() {
            sum = sum.addingSaturated(use.size)
            if (index + 1) * steps >= next * uses.count {
                found.append((held.count + index + 1, sum, use.accessedAt))
                while (index + 1) * steps >= next * uses.count { next += 1 }
            }
        }
        return found
    }

    /// The entries that a trim would evict after all expired ones; nil if the cache is within the limits as it is.
    func beyond(_ limits: Limits) -> (count: Int, size: Int64)? {
        func isBeyond(_ count: Int, _ size: Int64) -> Bool {
            count > limits.count ?? .max || size > limits.size ?? .max
        }
        if !isBeyond(count, size) { return nil }
        var (rest, kept) = ((count: count - expired, size: size - expiredSize), uses[...])
        var evicted = (count: 0, size: Int64(0))
        while isBeyond(rest.count, rest.size), let use = kept.popLast() {
            rest = (rest.count - 1, rest.size - use.size)
            evicted = (evicted.count + 1, evicted.size.addingSaturated(use.size))
        }
        return evicted
    }
}
