/// What can be asked of a value, or a type, that may be an optional.
private protocol CBOROptional {
    var isNil: Bool { get }
}

extension Optional: CBOROptional {
    fileprivate var isNil: Bool {
        if case .none = self { return true }
        return false
    }
}

enum CBOROptionals {
    /// Whether `value` is an optional, and nil.
    ///
    /// A failed cast is slow: ask only where it is rare.
    static func isNil<T>(_ value: T) -> Bool {
        (value as? any CBOROptional)?.isNil ?? false
    }

    /// Whether `type` is an optional's.
    ///
    /// Slow, like the other.
    static func isOptional(_ type: Any.Type) -> Bool {
        type is any CBOROptional.Type
    }
}
