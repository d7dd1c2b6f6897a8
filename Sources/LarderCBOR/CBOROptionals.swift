/// Questions to a value, or a type, that may be an optional.
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
    /// Returns whether `value` is an optional, and nil.
    ///
    /// A failing cast is slow, so call it only if the case is rare.
    static func isNil<T>(_ value: T) -> Bool {
        (value as? any CBOROptional)?.isNil ?? false
    }

    /// Returns whether `type` is an optional's.
    ///
    /// A failing cast is slow, so call it only if the case is rare.
    static func isOptional(_ type: Any.Type) -> Bool {
        type is any CBOROptional.Type
    }
}
