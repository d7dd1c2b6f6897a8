import Foundation

/// The state of one call of `encode`: the bytes so far, and the open containers.
///
/// Containers are written as they are filled, straight into one growing buffer. A container's head is one byte at first
/// and is patched when it closes. `frames` holds a frame for each value whose `encode(to:)` runs and for each nested
/// container that is still filled, the outermost first.
///
/// All containers hold the state strongly, so a container that outlives its value finds valid memory. Its writes are
/// refused.
///
/// Safety: `writer` is allocated in `init` and freed in `deinit`; all its users hold the state. No access to the frames
/// in it spans a call of user code. Bytes are addressed by offset, because the buffer moves when it grows.
final class CBOREncodingState: CBORReusableState {
    let writer: UnsafeMutablePointer<CBORWriter>
    private(set) var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    var rules: CBOREncodingRules { writer.pointee.rules }
    var top: Int { writer.pointee.top }
    var base: UnsafeMutableRawPointer { writer.pointee.base }
    private var stack = CBORStack()
    /// A Boolean value that indicates whether a container was refused because of its depth, by a call that could not
    /// throw.
    private var isTooDeep = false

    /// Returns whether values and containers may be nested one level more.
    @inline(__always)
    var hasRoom: Bool {
        top < CBORStack.trustedDepth || stack.hasRoom(depth: top)
    }
    var count: Int {
        get { writer.pointee.count }
        set { writer.pointee.count = newValue }
    }

    init() {
        writer = .allocate(capacity: 1)
        writer.initialize(to: CBORWriter())
    }

    /// Refuses a container so deep that the last step, which recurses as well, would find no room.
    func checkRoom(depth: Int) throws {
        // Sets are sorted before the containers around them are written, so levels are counted twice.
        guard depth < CBORStack.trustedDepth || stack.hasRoom(depth: min(depth, CBORFormat.maximumDepth - 1)) else {
            throw CBORRefusal.tooDeep(Any.self)
        }
    }

    /// Prepares the state for another value.
    func begin(rules: CBOREncodingRules, userInfo: [CodingUserInfoKey: any Sendable]) {
        writer.pointee.rules = rules
        if !userInfo.isEmpty || !self.userInfo.isEmpty { self.userInfo = userInfo }
        // The next thread may have its stack at the address of an ended thread's.
        stack = CBORStack()
        isTooDeep = false
    }

    deinit {
        writer.pointee.deallocate()
        writer.deinitialize(count: 1)
        writer.deallocate()
    }

    func encode<T: Encodable>(root value: T) throws {
        do {
            try encode(value, isRoot: true)
            if isTooDeep { throw CBORRefusal.tooDeep(T.self) }
            if writer.pointee.mayHaveDuplicates || rules.contains(.deterministic) {
                try CBORMapSorter(sorts: rules.contains(.deterministic)).arrange(self, from: 0)
            }
            // Texts that are values are refused when they are written.
            if rules.contains(.likePropertyList), CBORMapSorter.holds(self, text: "$null") {
                throw CBORRefusal("$null", "A property list cannot hold this text, which is nil there, as a key.")
            }
        } catch {
            throw errorWithPath(error)
        }
    }

    /// Returns the bytes.
    func takeData() -> Data {
        writer.pointee.takeData()
    }

    /// Forgets the encoded value.
    ///
    /// Frames stay for the next value.
    func reset() {
        writer.pointee.count = 0
        writer.pointee.mayHaveDuplicates = false
        if !userInfo.isEmpty { userInfo = [:] }
    }

    /// Releases the frames, which hold the state.
    func finish() {
        for frame in writer.pointee.frames + writer.pointee.detached { frame.close() }
        writer.pointee.frames = []
        writer.pointee.detached = []
        writer.pointee.top = 0
    }
}

// MARK: - Values and their frames

extension CBOREncodingState {
    /// Writes a value of any type.
    ///
    /// `layers` counts the single-value containers around it. A nil below some of them is written in another form than
    /// a nil of the outermost.
    func encode<T: Encodable>(_ value: T, layers: Int = 0, isRoot: Bool = false) throws {
        if try writeKnown(value) { return }
        try encodeCustom(value, layers: layers, isRoot: isRoot)
    }

    /// Writes an element of `frame`, usually of the type of the last.
    @inline(__always)
    func encode<T: Encodable>(_ value: T, in frame: CBOREncodingFrame) throws {
        let type = ObjectIdentifier(T.self)
        if frame.customType != type {
            if try writeKnown(value) { return }
            frame.customType = type
        }
        try encodeCustom(value, layers: 0)
    }

    /// Calls the value's own `encode(to:)`, with a frame.
    func encodeCustom<T: Encodable>(_ value: T, layers: Int, isRoot: Bool = false) throws {
        guard hasRoom else { throw CBORRefusal.tooDeep(T.self) }
        if rules.contains(.deterministic), let unordered = value as? any CBORUnordered, try unordered.writeSorted(self)
        {
            return
        }
        let slot = top
        let frame = push(.value, layers: layers)
        do {
            try value.encode(to: CBOREncoding(frame: frame))
        } catch {
            let converted = errorWithPath(error)
            close(downTo: slot)
            throw converted
        }
        if frame.form == .undecided {
            if isRoot {
                throw CBORRefusal(String(describing: T.self), "Top-level \(T.self) did not encode any values.")
            }
            writer.pointee.write(byte: CBORFormat.emptyMap)
        }
        // Usually nothing else is open.
        if top == slot &+ 1, writer.pointee.detached.isEmpty { return end(frame) }
        close(downTo: slot)
    }

    /// Opens a frame for the next depth: the last one used there, if nothing else holds it.
    @inline(__always)
    func push(_ role: CBOREncodingFrame.Role, layers: Int = 0) -> CBOREncodingFrame {
        let slot = top
        if slot == writer.pointee.frames.count {
            writer.pointee.frames.append(CBOREncodingFrame(state: self))
        } else if !isKnownUniquelyReferenced(&writer.pointee.frames[slot]) {
            writer.pointee.frames[slot] = CBOREncodingFrame(state: self)
        }
        let frame = writer.pointee.frames[slot]
        frame.open(role, in: slot, at: count, layers: layers, detachedBase: writer.pointee.detached.count)
        writer.pointee.top = slot &+ 1
        return frame
    }

    /// Opens a frame for a nested container, which refuses writes if it is too deep.
    func pushNested() -> CBOREncodingFrame {
        guard hasRoom else {
            isTooDeep = true
            return CBOREncodingFrame(state: self)
        }
        return push(.nested)
    }

    /// Ends the frame in `slot` and all above it.
    func close(downTo slot: Int) {
        while top > slot {
            let frame = writer.pointee.frames[top - 1]
            if writer.pointee.detached.count > frame.detachedBase { closeDetached(from: frame.detachedBase) }
            end(frame)
        }
    }

    @inline(never)
    private func closeDetached(from base: Int) {
        for late in writer.pointee.detached[base...] { late.close() }
        writer.pointee.detached.removeSubrange(base...)
    }

    /// Ends the innermost frame, and writes its count into its head.
    @inline(__always)
    func end(_ frame: CBOREncodingFrame) {
        if frame.form == .undecided, frame.role == .nested { writer.pointee.write(byte: CBORFormat.emptyMap) }
        finishHead(frame)
        frame.slot = CBOREncodingFrame.closed
        writer.pointee.top &-= 1
    }

    /// Writes the number of elements into a container's head, which was left one byte long.
    private func finishHead(_ frame: CBOREncodingFrame) {
        guard frame.form == .map || frame.form == .array else { return }
        let major = frame.form == .map ? CBORFormat.Major.map : CBORFormat.Major.array
        if frame.count < 24 {
            base.storeBytes(of: major | UInt8(frame.count), toByteOffset: frame.header, as: UInt8.self)
        } else {
            resizeHead(at: frame.header, from: 1, major: major, elements: frame.count)
        }
    }

    /// Discards the current element of `frame`, with all open frames above it.
    func rollBack(_ frame: CBOREncodingFrame) {
        guard frame.slot >= 0 else { return }
        close(downTo: frame.slot + 1)
        count = frame.element
        frame.count -= 1
    }
}

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

/// A step of a coding path that was read back from bytes.
struct CBORPathKey: CodingKey {
    static let superclass = CBORPathKey(text: "super")

    let stringValue: String
    let intValue: Int?

    init(text: String) {
        stringValue = text
        intValue = nil
    }

    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }

    init(number: Int) {
        stringValue = "\(number)"
        intValue = number
    }

    init?(stringValue: String) {
        self.init(text: stringValue)
    }

    init?(intValue: Int) {
        self.init(number: intValue)
    }
}

// No path is kept while values are written. When one is needed, it is read back. Each open map stores the offset of its
// latest key, and each open array the number of its elements.

/// Safety: A path is read back from heads and texts that the encoder itself wrote, inside `count` bytes.
extension CBOREncodingState {
    /// Returns an error about the value that is being written.
    func error(_ value: Any, _ description: String) -> EncodingError {
        .invalidValue(value, EncodingError.Context(codingPath: currentPath, debugDescription: description))
    }

    func lateUseError() -> EncodingError {
        error(Self.self, "A container was used after the value it belongs to was encoded.")
    }

    /// Returns `error`, with the path if it is the writer's.
    func errorWithPath(_ error: any Error, path: [any CodingKey]? = nil) -> any Error {
        guard let refusal = error as? CBORRefusal else { return error }
        return EncodingError.invalidValue(
            refusal.value,
            EncodingError.Context(codingPath: path ?? currentPath, debugDescription: refusal.description))
    }

    func alreadyEncoded(_ frame: CBOREncodingFrame) -> EncodingError {
        .invalidValue(
            Self.self,
            EncodingError.Context(
                codingPath: frame.codingPath,
                debugDescription: "A single-value container takes one value, and none if another container was created."
            ))
    }

    /// The path of the current element of the innermost frame.
    private var currentPath: [any CodingKey] {
        guard top > 0 else { return [] }
        let frame = writer.pointee.frames[top - 1]
        return frame.codingPath + frame.elementPath
    }

    /// The text whose head is at `offset`.
    func text(at offset: Int) -> String {
        var reader = CBORReader(base: UnsafeRawPointer(base), count: count, offset: offset)
        do {
            return try reader.string()
        } catch {
            return ""
        }
    }
}

extension CBOREncodingFrame {
    /// The coding path of this value or container.
    var codingPath: [any CodingKey] {
        if isDetached { return detachedPath }
        guard slot >= 0 else { return [] }
        var path: [any CodingKey] = []
        for frame in state.writer.pointee.frames[..<slot] { path += frame.elementPath }
        return path
    }

    /// The step to the element that is being written, or was written last.
    fileprivate var elementPath: [any CodingKey] {
        guard count > 0 else { return [] }
        switch form {
        case .map: return [CBORPathKey(text: state.text(at: element))]
        case .array: return [CBORPathKey(index: count - 1)]
        case .undecided, .single: return []
        }
    }
}
