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
