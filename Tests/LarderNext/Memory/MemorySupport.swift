/// A value whose release runs code; nothing of it is stored.
final class Releasing: Codable, Sendable {
    private let onRelease: @Sendable () -> Void

    init(_ onRelease: @escaping @Sendable () -> Void) {
        self.onRelease = onRelease
    }

    init(from decoder: any Decoder) throws { onRelease = {} }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(1)
    }

    deinit { onRelease() }
}

/// A key whose hashes are all equal.
struct CollidingKey: Hashable, Sendable {
    let number: Int

    func hash(into hasher: inout Hasher) {}
}
