/// A property whose value is kept in a cache.
///
/// ```swift
/// @Cached("theme", in: settings) var theme = "light"
/// ```
///
/// Reading gives the value of the key, and the default while there is none; writing stores it. A read that fails gives
/// the default, and a value that cannot be written is not stored. A failure is reported as that of the cache's
/// subscript is.
///
/// The cache has to be there when the property is made: the line above is for a local property; a static or global
/// one has to be isolated, to `@MainActor` for instance, as Swift 6 demands. For a cache that a type is given, declare
/// `@Cached<String, String> var theme: String`, and set `_theme = Cached(wrappedValue: "light", "theme", in: settings)` in
/// `init`.
@propertyWrapper
public struct Cached<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let defaultValue: Value
    private let key: Key
    private let cache: Cache<Key, Value>

    /// A property that is kept under a key.
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

    /// Removes what is stored: the property has its default again.
    public func reset() {
        cache[key] = nil
    }
}
