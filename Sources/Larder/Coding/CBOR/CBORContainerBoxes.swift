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
    private final var others: [(type: ObjectIdentifier, box: AnyObject)] = []
    /// A container that could not be kept was handed out, so nobody knows who holds one.
    private final var isLeaky = false

    /// The box of the kept container for keys of `type`.
    @inline(__always)
    final func box(_ type: ObjectIdentifier) -> AnyObject? {
        firstType == type ? first : otherBox(type)
    }

    private final func otherBox(_ type: ObjectIdentifier) -> AnyObject? {
        for entry in others where entry.type == type { return entry.box }
        return nil
    }

    /// Keeps `container`, which is for keys of `type`.
    final func remember<Container>(_ type: ObjectIdentifier, _ container: Container) {
        guard MemoryLayout<Container>.size == MemoryLayout<AnyObject>.size, !_isPOD(Container.self) else {
            isLeaky = true
            return
        }
        let box = unsafeBitCast(container, to: AnyObject.self)
        if first == nil {
            firstType = type
            first = box
        } else if others.count < 3 {
            others.append((type, box))
        } else {
            isLeaky = true
        }
    }

    /// Whether nobody else holds any of them.
    @inline(__always)
    final func areBoxesOurs() -> Bool {
        if isLeaky { return false }
        if first != nil, !isKnownUniquelyReferenced(&first) { return false }
        return others.isEmpty || areOthersOurs()
    }

    private final func areOthersOurs() -> Bool {
        for index in others.indices where !isKnownUniquelyReferenced(&others[index].box) { return false }
        return true
    }

    final func removeBoxes() {
        firstType = nil
        first = nil
        others = []
    }
}
