#if canImport(Darwin)
public import LarderCLocks

/// A value that fits into a word.
public protocol AtomicWord: Sendable {
    /// The bits of the word.
    var word: UInt64 { get }

    /// Takes the value of a word.
    init(word: UInt64)
}

/// What other threads see of an operation; here each is sequentially consistent.
public enum AtomicOrdering: Sendable {
    /// No order, acquire, release, both, or one order of all.
    case relaxed, acquiring, releasing, acquiringAndReleasing, sequentiallyConsistent
}

/// Takes the place of `Synchronization.Atomic`, which Apple's systems have since macOS 15 and iOS 18.
///
/// Safety: The word is reached by atomic operations alone, and is freed with this value, which cannot be copied.
public struct Atomic<Value: AtomicWord>: ~Copyable, @unchecked Sendable {
    @usableFromInline let pointer: UnsafeMutablePointer<UInt64>

    /// Begins with a value.
    @inlinable
    public init(_ value: Value) {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: value.word)
    }

    deinit { pointer.deallocate() }

    /// The value.
    @inlinable
    public borrowing func load(ordering: AtomicOrdering) -> Value { Value(word: larder_atomic_load(pointer)) }

    /// Sets the value.
    @inlinable
    public borrowing func store(_ value: consuming Value, ordering: AtomicOrdering) {
        larder_atomic_store(pointer, value.word)
    }

    /// Sets the value, and returns the old one.
    @inlinable
    public borrowing func exchange(_ value: consuming Value, ordering: AtomicOrdering) -> Value {
        Value(word: larder_atomic_exchange(pointer, value.word))
    }

    /// Sets the value if it is as expected, and returns whether it was, and what it was.
    @inlinable
    public borrowing func compareExchange(
        expected: consuming Value, desired: consuming Value, ordering: AtomicOrdering
    ) -> (exchanged: Bool, original: Value) {
        var word = larder_atomic_load(pointer)
        while true {
            let original = Value(word: word)
            // Sums can have left bits above those of the value.
            if original.word != expected.word { return (false, original) }
            if larder_atomic_compare_exchange(pointer, &word, desired.word) { return (true, original) }
        }
    }
}

extension Atomic where Value: FixedWidthInteger {
    /// Adds a number, which may not overflow.
    @inlinable @discardableResult
    public borrowing func add(_ value: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = Value(word: larder_atomic_add(pointer, value.word))
        return (old, old + value)
    }

    /// Adds a number, and begins again behind the largest one.
    @inlinable @discardableResult
    public borrowing func wrappingAdd(_ value: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = Value(word: larder_atomic_add(pointer, value.word))
        return (old, old &+ value)
    }

    /// Subtracts a number, which may not overflow.
    @inlinable @discardableResult
    public borrowing func subtract(_ value: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = Value(word: larder_atomic_add(pointer, 0 &- value.word))
        return (old, old - value)
    }
}

extension UnsafePointer where Pointee == UInt64 {
    /// The word, which other threads and processes write.
    @inlinable public var loadedAtomically: UInt64 { larder_atomic_load(self) }
}

extension FixedWidthInteger {
    /// The number in the lowest bits, as many as it has.
    @inlinable
    public var word: UInt64 { UInt64(truncatingIfNeeded: self) }

    /// Takes the lowest bits, as many as the number has.
    @inlinable
    public init(word: UInt64) { self.init(truncatingIfNeeded: word) }
}

extension Int: AtomicWord {}
extension UInt: AtomicWord {}
extension Int32: AtomicWord {}
extension UInt32: AtomicWord {}
extension Int64: AtomicWord {}
extension UInt64: AtomicWord {}

extension Bool: AtomicWord {
    /// 1 for true.
    @inlinable
    public var word: UInt64 { self ? 1 : 0 }

    /// True for all words but 0.
    @inlinable
    public init(word: UInt64) { self = word != 0 }
}
#endif
