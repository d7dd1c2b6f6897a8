/// A value whose release runs code; nothing of it is stored.
package final class Releasing: Codable, Sendable {
    private let onRelease: @Sendable () -> Void

    package init(_ onRelease: @escaping @Sendable () -> Void) {
        self.onRelease = onRelease
    }

    package init(from decoder: any Decoder) throws { onRelease = {} }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(1)
    }

    deinit { onRelease() }
}
