package import Foundation

/// The attributes that most entries do not have, packed into one column.
@usableFromInline
package struct RowMeta: Hashable, Sendable {
    package var isPinned = false
    /// The sliding age of the entry alone, in milliseconds.
    package var slidingAge: Int64?
    /// A Boolean value that indicates whether the entry's own end is a moment, and not an age that a touch restarts.
    package var hasFixedEnd = false
    @usableFromInline package var cost: Int64?
    package var extendedData: Data?
    package var tags: [String] = []
    package var refresh: RefreshNote?

    @usableFromInline
    package init() {}

    /// Sets the age of the entry alone, and returns its end; nil if that is the cache's or slides.
    package mutating func setOwnAge(_ rule: AgeRule, writtenAt: Int64) -> Int64? {
        (slidingAge, hasFixedEnd) = (rule.slidingAge, false)
        switch rule {
        case .sinceAccess: return nil
        case .until: hasFixedEnd = true
        case .unlimited, .sinceWrite, .jittered: break
        }
        return rule.drawn.end(writtenAt: writtenAt, accessedAt: writtenAt, id: 0)
    }

    var isEmpty: Bool {
        !isPinned && !hasFixedEnd && slidingAge == nil && cost == nil && extendedData == nil && tags.isEmpty
            && refresh == nil
    }

    /// The packed form: a byte that says what follows, then each as a length or number of 8 bytes and its bytes.
    var packed: Data? {
        if isEmpty { return nil }
        var bytes = Data([
            (isPinned ? 1 : 0) | (slidingAge == nil ? 0 : 2) | (cost == nil ? 0 : 4) | (extendedData == nil ? 0 : 8)
                | (tags.isEmpty ? 0 : 16) | (hasFixedEnd ? 32 : 0)
                | (refresh == nil ? 0 : 64)
        ])
        func append(_ number: Int64) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
        func append(_ part: Data) {
            append(Int64(part.count))
            bytes.append(part)
        }
        if let slidingAge { append(slidingAge) }
        if let cost { append(cost) }
        if let extendedData { append(extendedData) }
        if !tags.isEmpty {
            append(Int64(tags.count))
            for tag in tags { append(Data(tag.utf8)) }
        }
        if let refresh { append(refresh.number) }
        return bytes
    }

    /// Creates the attributes from their packed form; nil if the form is damaged.
    init?(packed: Data?) {
        guard let packed else { return }
        var (rest, isDamaged) = (packed[...], false)
        func part(_ count: Int64) -> Data {
            guard count >= 0, count <= rest.count else {
                isDamaged = true
                return Data()
            }
            defer { rest = rest.dropFirst(Int(count)) }
            return Data(rest.prefix(Int(count)))
        }
        func number() -> Int64 { part(8).reversed().reduce(0) { $0 << 8 | Int64($1) } }
        let flags = part(1).first ?? 0
        (isPinned, hasFixedEnd) = (flags & 1 != 0, flags & 32 != 0)
        if flags & 2 != 0 { slidingAge = number() }
        if flags & 4 != 0 { cost = number() }
        if flags & 8 != 0 { extendedData = part(number()) }
        if flags & 16 != 0 {
            var count = number()
            if count <= 0 { isDamaged = true }
            while count > 0 && !isDamaged {
                tags.append(String(decoding: part(number()), as: UTF8.self))
                count -= 1
            }
        }
        if flags & 64 != 0 { refresh = RefreshNote(number: number()) }
        if isDamaged || !rest.isEmpty || flags > 127 { return nil }
    }
}
