/// The boxes that the standard library made around our keyed containers, kept to be handed out again.
///
/// `KeyedEncodingContainer` and its decoding twin are structs around one reference, to a box around our container. To
/// make one takes an allocation and several look-ups of generic metadata. We keep the reference and put the struct
/// together again from it. Should a release of the standard library change that layout, `remember` sees another size
/// and keeps nothing.
///
/// A base class, and the first box a property by itself, because that spares the checks for exclusive access.
class CBORContainerBoxes {
    private final var firstType: ObjectIdentifier?
    private final var first: AnyObject?
    /// Where `first` is: to read it costs no reference count.
    private final var firstAddress: UnsafeRawPointer?
    // An enum with associated values has a type of key for each of its cases, so there are some more.
    private final var secondType: ObjectIdentifier?
    private final var second: AnyObject?
    private final var thirdType: ObjectIdentifier?
    private final var third: AnyObject?
    private final var fourthType: ObjectIdentifier?
    private final var fourth: AnyObject?
    /// A container that could not be kept was handed out, so nobody knows who holds one.
    private final var isLeaky = false

    /// The address of the box of the kept container for keys of `type`; this object holds the box.
    @inline(__always)
    final func box(_ type: ObjectIdentifier) -> UnsafeRawPointer? {
        firstType == type ? firstAddress : otherBox(type)
    }

    private final func otherBox(_ type: ObjectIdentifier) -> UnsafeRawPointer? {
        if secondType == type { return Self.address(second) }
        if thirdType == type { return Self.address(third) }
        return fourthType == type ? Self.address(fourth) : nil
    }

    private static func address(_ box: AnyObject?) -> UnsafeRawPointer? {
        box.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }
    }

    /// Keeps `container`, which is for keys of `type`.
    final func remember<Container>(_ type: ObjectIdentifier, _ container: Container) {
        guard MemoryLayout<Container>.size == MemoryLayout<AnyObject>.size, !_isPOD(Container.self) else {
            isLeaky = true
            return
        }
        let box = unsafeBitCast(container, to: AnyObject.self)
        if first == nil {
            (firstType, first, firstAddress) = (type, box, Self.address(box))
        } else if second == nil {
            (secondType, second) = (type, box)
        } else if third == nil {
            (thirdType, third) = (type, box)
        } else {
            // The last place goes from one to the next; who holds a box that is pushed out is not known any more.
            if fourth != nil, !isKnownUniquelyReferenced(&fourth) { isLeaky = true }
            (fourthType, fourth) = (type, box)
        }
    }

    /// Whether nobody else holds any of them.
    @inline(__always)
    final func areBoxesOurs() -> Bool {
        if isLeaky { return false }
        if first != nil, !isKnownUniquelyReferenced(&first) { return false }
        return second == nil || areOthersOurs()
    }

    private final func areOthersOurs() -> Bool {
        if !isKnownUniquelyReferenced(&second) { return false }
        if third != nil, !isKnownUniquelyReferenced(&third) { return false }
        return fourth == nil || isKnownUniquelyReferenced(&fourth)
    }

    final func removeBoxes() {
        (firstType, first, firstAddress) = (nil, nil, nil)
        (secondType, second) = (nil, nil)
        (thirdType, third) = (nil, nil)
        (fourthType, fourth) = (nil, nil)
    }
}
