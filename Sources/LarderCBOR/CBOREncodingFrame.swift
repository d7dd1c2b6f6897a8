/// One value or container that is being written.
///
/// Frames of one depth are used again and again, together with the box that the standard library makes around a keyed
/// container: making that box costs more than writing a small struct. A frame is used again only when nobody but us
/// holds its boxes, so a container kept beyond its value's end keeps a frame of its own, and its writes are refused.
final class CBOREncodingFrame: CBORContainerBoxes {
    enum Role { case value, nested }
    enum Form { case undecided, single, map, array }

    let state: CBOREncodingState
    /// The state's, at hand.
    let writer: UnsafeMutablePointer<CBORWriter>
    /// Its place among the state's frames, -1 if it is not, or no longer, one of them.
    var slot: Int
    /// The slot while the frame is open on the stack, else `closed`.
    var openSlot = CBOREncodingFrame.closed
    static let closed = -2
    /// Tells one use of the frame from the next.
    var serial: UInt32 = 0
    var layers = 0
    var role = Role.value
    var form = Form.undecided
    var count = 0
    /// Where the container's head stands.
    var header = 0
    /// Where the key of the element that is written, or the element itself in an array, begins.
    var element = 0
    var detachedBase = 0
    /// Detached only: where the container ends.
    var end = 0
    var isDetached = false
    /// Detached only: what led to it.
    var detachedPath: [any CodingKey] = []
    /// Somebody may hold it by other means than the boxes: an unkeyed container, an encoder for a superclass.
    var isShared = false

    /// The keys written so far, a bit for each: exactly for enums of up to 64 cases, else a guess that may err towards
    /// "written before".
    var seenKeys: UInt64 = 0
    /// The same for the keys of nested containers; all of them once there are several types of keys.
    var openedKeys: UInt64 = 0
    /// The keys of nested containers that no bit stands for.
    private var openedNames: Set<String> = []
    /// The use of the frame that they belong to.
    private var namesSerial: UInt32 = 0
    var keyType: ObjectIdentifier?
    /// The type of the latest element that wrote itself: most often the next one is of that type, too.
    var customType: ObjectIdentifier?

    /// The frame that the next value below took last.
    var nextFrame: CBOREncodingFrame? {
        didSet { next = nextFrame.map { Unmanaged.passUnretained($0) } }
    }
    /// The same: to read it costs no reference count.
    private var next: Unmanaged<CBOREncodingFrame>?

    init(state: CBOREncodingState, slot: Int) {
        self.state = state
        writer = state.writer
        self.slot = slot
    }

    func open(_ role: Role, at offset: Int, layers: Int, detachedBase: Int) {
        self.role = role
        self.layers = layers
        self.detachedBase = detachedBase
        openSlot = slot
        form = .undecided
        isShared = false
        header = offset
        element = offset
        count = 0
    }

    /// The frame for a value below this one, if it is the right one for this depth and free.
    @inline(__always)
    func child(_ depth: Int) -> Unmanaged<CBOREncodingFrame>? {
        guard let next else { return nil }
        let isFree = next._withUnsafeGuaranteedRef { $0.slot == depth && !$0.isDetached && $0.areBoxesOurs() }
        return isFree ? next : nil
    }

    /// Makes the frame refuse whatever comes.
    func retire() {
        openSlot = CBOREncodingFrame.closed
        slot = -1
        isDetached = false
        serial &+= 1
        removeBoxes()
        nextFrame = nil
    }

    var isOpen: Bool { openSlot >= 0 || isDetached }

    // MARK: Deciding on a form

    func beginMap() {
        begin(.map, CBORFormat.emptyMap)
        seenKeys = 0
        openedKeys = 0
        keyType = nil
    }

    /// Notes that a nested container is opened under `key`, or just not.
    ///
    /// - Returns: Whether one may have been opened under it before.
    func noteOpening<Key: CodingKey>(_ key: Key, _ text: String) -> Bool {
        if MemoryLayout<Key>.size == 1 {
            let number = unsafeBitCast(key, to: UInt8.self)
            if number < 64 {
                let bit: UInt64 = 1 << UInt64(number)
                defer { openedKeys |= bit }
                return openedKeys & bit != 0
            }
        }
        if namesSerial != serial {
            namesSerial = serial
            openedNames.removeAll()
        }
        return !openedNames.insert(text).inserted || openedKeys == .max
    }

    func beginArray() {
        begin(.array, CBORFormat.emptyArray)
    }

    private func begin(_ form: Form, _ head: UInt8) {
        self.form = form
        count = 0
        if isDetached {
            // It holds the empty map that stands for "nothing encoded".
            writer.pointee.base.storeBytes(of: head, toByteOffset: header, as: UInt8.self)
        } else {
            header = writer.pointee.count
            element = header
            writer.pointee.write(byte: head)
        }
    }
}
