/// A property whose value is kept in a cache.
///
/// ```swift
/// @Cached("theme", in: settings) var theme = "light"
/// ```
///
/// Reading returns the value of the key, or the default if there is none; writing stores a value. If a read fails, it
/// returns the default. A value that cannot be written is not stored. A failure is reported like one of the cache's
/// subscript.
///
/// The cache must exist when the property is created: the line above is for a local property. A static or global
/// property must be isolated, for example to `@MainActor`, as Swift 6 requires. If a type receives its cache, declare
/// `@Cached<String, String> var theme: String`, and set
/// `_theme = Cached(wrappedValue: "light", "theme", in: settings)` in `init`.
@propertyWrapper
public struct Cached<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let defaultValue: Value
    private let key: Key
    private let cache: Cache<Key, Value>

    /// Creates a property whose value is kept under a key.
    ///
    /// - Parameters:
    ///   - wrappedValue: The default, which is not stored.
    ///   - key: The key.
    ///   - cache: The cache.
    public init(wrappedValue: Value, _ key: Key, in cache: Cache<Key, Value>) {
        defaultValue = wrappedValue
        self.key = key
        self.cache = cache
    }

    /// The value of the key, or the default.
    public var wrappedValue: Value {
        get { cache[key] ?? defaultValue }
        nonmutating set { cache[key] = newValue }
    }

    /// The wrapper itself, for ``reset()``.
    public var projectedValue: Cached { self }

    /// Deletes the stored value: the property has its default again.
    public func reset() {
        cache[key] = nil
    }
}
