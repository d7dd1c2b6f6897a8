/// The boxes that the standard library made around our keyed containers, kept to be handed out again.
///
/// `KeyedEncodingContainer` and its decoding twin are structs around one reference, to a box around our container. To
/// make one takes an allocation and several look-ups of generic metadata. We keep the reference and put the struct
/// together again from it. Should a release of the standard library change that layout, `remember` sees another size
/// and keeps nothing.
struct CBORContainerBoxes {
    private var firstType: ObjectIdentifier?
    private var first: AnyObject?
    private var others: [(type: ObjectIdentifier, box: AnyObject)] = []
    /// A container that could not be kept was handed out, so nobody knows who holds one.
    private var isLeaky = false

    /// The kept container for keys of `type`.
    @inline(__always)
    func container<Container>(_ type: ObjectIdentifier, as: Container.Type) -> Container? {
        if firstType == type, let first { return unsafeBitCast(first, to: Container.self) }
        return others.isEmpty ? nil : other(type)
    }

    private func other<Container>(_ type: ObjectIdentifier) -> Container? {
        for entry in others where entry.type == type { return unsafeBitCast(entry.box, to: Container.self) }
        return nil
    }

    /// Keeps `container`, which is for keys of `type`.
    mutating func remember<Container>(_ type: ObjectIdentifier, _ container: Container) {
        guard MemoryLayout<Container>.size == MemoryLayout<AnyObject>.size, _isPOD(Container.self) == false else {
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
    mutating func areOurs() -> Bool {
        if isLeaky { return false }
        if first != nil, !isKnownUniquelyReferenced(&first) { return false }
        return others.isEmpty || othersAreOurs()
    }

    private mutating func othersAreOurs() -> Bool {
        for index in others.indices where !isKnownUniquelyReferenced(&others[index].box) { return false }
        return true
    }

    mutating func removeAll() {
        firstType = nil
        first = nil
        others = []
    }
}
