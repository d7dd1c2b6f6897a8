/// One value or container that is being written.
///
/// The encoder and the containers that user code gets hold their frame. A frame is used again for a later value only if
/// nothing else holds it. A container that is kept after its value's end keeps a closed frame, which refuses writes.
///
/// Safety: `writer` belongs to `state`, which the frame holds. `keys` belongs to the frame alone, and no access to it
/// spans a call of user code. Memory reached by a pointer needs no run-time check for exclusive access. These checks
/// took a seventh of the time of a small struct.
final class CBOREncodingFrame {
    enum Role { case value, nested }
    enum Form { case undecided, single, map, array }

    let state: CBOREncodingState
    /// The writer of `state`.
    let writer: UnsafeMutablePointer<CBORWriter>
    /// The index in the stack of open frames, or `closed`.
    var slot = CBOREncodingFrame.closed
    /// A number that is never the index of the innermost frame, which is -1 if none is open.
    static let closed = -2
    var layers = 0
    var role = Role.value
    var form = Form.undecided
    var count = 0
    /// The offset of the container's head.
    var header = 0
    /// The offset of the pair or array element that is being written.
    var element = 0
    var detachedBase = 0
    /// The offset of the container's end; for a detached container only.
    var end = 0
    var isDetached = false
    /// The coding path; for a detached container only.
    var detachedPath: [any CodingKey] = []
    /// The type of the last element that wrote itself.
    var customType: ObjectIdentifier?
    /// The keys written so far.
    private let keys: UnsafeMutablePointer<CBORKeySet>

    init(state: CBOREncodingState) {
        self.state = state
        writer = state.writer
        keys = .allocate(capacity: 1)
        keys.initialize(to: CBORKeySet())
    }

    deinit {
        keys.deinitialize(count: 1)
        keys.deallocate()
    }

    @inline(__always)
    func open(_ role: Role, in slot: Int, at offset: Int, layers: Int, detachedBase: Int) {
        self.role = role
        self.layers = layers
        self.detachedBase = detachedBase
        self.slot = slot
        form = .undecided
        header = offset
        element = offset
        count = 0
    }

    /// Refuses all later writes.
    func close() {
        slot = CBOREncodingFrame.closed
        isDetached = false
    }

    var isOpen: Bool { slot >= 0 || isDetached }
    /// A Boolean value that indicates whether the next byte that is written belongs to this frame.
    @inline(__always)
    var isInnermost: Bool { slot == writer.pointee.top &- 1 }

    /// Begins a map or an array, unless the frame already has this form.
    ///
    /// - Returns: False if the frame is closed or has another form.
    @inline(__always)
    func becomes(_ form: Form) -> Bool {
        guard isOpen else { return false }
        if self.form != .undecided { return self.form == form }
        guard isInnermost || isDetached else { return false }
        begin(form)
        return true
    }

    func begin(_ form: Form) {
        self.form = form
        count = 0
        if form == .map { keys.pointee.removeAll() }
        let head = form == .map ? CBORFormat.emptyMap : CBORFormat.emptyArray
        if isDetached {
            // The placeholder for a value that encodes nothing is an empty map.
            writer.pointee.base.storeBytes(of: head, toByteOffset: header, as: UInt8.self)
        } else {
            header = writer.pointee.count
            element = header
            writer.pointee.write(byte: head)
        }
    }

    // MARK: Elements

    /// Writes the key of the next pair.
    @inline(__always)
    func begin<Key: CodingKey>(_ key: Key) {
        element = writer.pointee.count
        count &+= 1
        writer.pointee.write(key.stringValue)
        if !noteKey() { writer.pointee.mayHaveDuplicates = true }
    }

    /// Adds the key that was just written to the set of keys.
    ///
    /// - Returns: False if the map may already have it.
    @inline(__always)
    func noteKey() -> Bool {
        keys.pointee.insert(CBORKeySet.digest(writer.pointee.base + element, writer.pointee.count &- element))
    }

    /// Removes the failed element; returns its error, with the path.
    func undo(_ error: any Error) -> any Error {
        let converted = state.errorWithPath(error)
        state.rollBack(self)
        return converted
    }

    /// Opens a container inside this one, under `key` or as the next element of an array.
    ///
    /// - Parameter form: The form of the container. If the map already has a container of this form under the key, that
    ///   one is opened.
    func openNested(key: String?, as form: Form = .undecided) -> CBOREncodingFrame {
        let state = state
        guard isInnermost || state.makeInnermost(self) else {
            writer.pointee.mayHaveDuplicates = true
            return state.openAside(self, key: key, as: form)
        }
        element = writer.pointee.count
        if let key {
            writer.pointee.write(key)
            if !noteKey() {
                let afterKey = writer.pointee.count
                if form != .undecided, let earlier = state.reopen(in: self, key: element..<afterKey, as: form) {
                    writer.pointee.count = element
                    return earlier
                }
                writer.pointee.mayHaveDuplicates = true
            }
        }
        count &+= 1
        return state.pushNested()
    }
}
