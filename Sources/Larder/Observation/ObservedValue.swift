public import Observation

/// The value of a key for a view: it follows its entry until it is released.
///
/// ```swift
/// struct Title: View {
///     @State var title: ObservedValue<Int, String>
///     var body: some View { Text(title.value ?? "…") }
/// }
/// ```
///
/// It needs macOS 14, iOS 17 or their siblings: on older systems, use ``Cache/changes(forKey:every:)``.
///
/// SwiftUI views use it as it is; elsewhere `withObservationTracking` tells of its changes.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
@MainActor @Observable
public final class ObservedValue<Key: Codable & Hashable & Sendable, Value: Sendable> {
    /// The key.
    public let key: Key

    /// The value: from memory at once if it is there, else as soon as it was read; nil if there is none.
    public private(set) var value: Value?

    @ObservationIgnored private var following: Following?

    init(_ cache: Cache<Key, Value>, _ key: Key, _ interval: Duration) {
        self.key = key
        value = cache.memory.value(forKey: key)
        let values = cache.changes(forKey: key, every: interval)
        following = Following(
            Task { [weak self] in
                for await value in values {
                    guard let self else { return }
                    self.value = value
                }
            })
    }
}

/// A task that ends with the object that it serves.
private final class Following: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}

extension Cache {
    /// Returns the value of a key for a view, which follows every change of it until it is released.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - interval: The minimum time between two changes that the view sees.
    @available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
    @MainActor
    public func observed(_ key: Key, every interval: Duration = .milliseconds(100)) -> ObservedValue<Key, Value> {
        ObservedValue(self, key, interval)
    }
}
