import Larder

/// What the memory scenarios ask of everything they measure; generic code over it is specialised.
protocol KeyedStore<Key, Value>: AnyObject, Sendable {
    associatedtype Key: Hashable & Sendable
    associatedtype Value: Sendable
    subscript(key: Key) -> Value? { get set }
}

extension MemoryCache: KeyedStore {}
extension LockedDictionary: KeyedStore {}
extension NodeLRU: KeyedStore {}
extension FoundationCache: KeyedStore {}
