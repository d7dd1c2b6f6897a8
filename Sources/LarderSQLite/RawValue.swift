/// A stored value of any type.
package enum RawValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])
}
