import Foundation

/// `NSCache`, with the boxes a Swift key and value need.
final class FoundationCache<Key: Hashable & Sendable, Value: Sendable>: @unchecked Sendable {
    // Safety: NSCache locks by itself.
    private let cache = NSCache<BoxedKey<Key>, BoxedValue<Value>>()

    init(limit: Int = 0) {
        cache.countLimit = limit
    }

    subscript(key: Key) -> Value? {
        get { cache.object(forKey: BoxedKey(key))?.value }
        set { if let newValue { cache.setObject(BoxedValue(newValue), forKey: BoxedKey(key)) } }
    }
}

private final class BoxedKey<Key: Hashable>: NSObject {
    let key: Key

    init(_ key: Key) {
        self.key = key
    }

    override var hash: Int { key.hashValue }

    override func isEqual(_ object: Any?) -> Bool { (object as? Self)?.key == key }
}

private final class BoxedValue<Value> {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
