import Foundation

/// What one call of `encode` works on: the bytes so far, and the containers that are open.
///
/// Containers are written as they are filled, straight into one growing buffer. A container's head is one byte at first
/// and is patched when it closes. `frames` holds, from the outermost inwards, a frame for each value whose `encode(to:)`
/// runs and for each nested container that is still filled.
///
/// All containers hold the state strongly, so that one that outlives its value finds memory; its writes are refused.
///
/// Safety: `writer` is allocated in `init` and freed in `deinit`; whatever uses it holds the state. No access to the
/// frames in it spans a call of user code, and bytes are addressed by offset, because the buffer moves when it grows.
final class CBOREncodingState: CBORReusableState {
    let writer: UnsafeMutablePointer<CBORWriter>
    private(set) var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    var rules: CBOREncodingRules { writer.pointee.rules }
    var top: Int { writer.pointee.top }
    var base: UnsafeMutableRawPointer { writer.pointee.base }
    private var stack = CBORStack()
    /// A container was refused because it lay too deep; the call that asked for it could not say so.
    private var isTooDeep = false

    /// Whether values and containers may be nested one level more.
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

    /// Refuses a container so deep that the last pass, which recurses as well, would find no room.
    func checkRoom(depth: Int) throws {
        // Sets and the like are arranged before what lies around them is written, so levels are counted twice.
        guard depth < CBORStack.trustedDepth || stack.hasRoom(depth: min(depth, CBORFormat.maximumDepth - 1)) else {
            throw CBORRefusal.tooDeep(Any.self)
        }
    }

    /// Makes ready for another value.
    func begin(rules: CBOREncodingRules, userInfo: [CodingUserInfoKey: any Sendable]) {
        writer.pointee.rules = rules
        if !userInfo.isEmpty || !self.userInfo.isEmpty { self.userInfo = userInfo }
        // The next thread may have a stack where that of one which ended was.
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
            // Texts that are values are refused where they are met.
            if rules.contains(.likePropertyList), CBORMapSorter.holds(self, text: "$null") {
                throw CBORRefusal("$null", "A property list cannot hold this text, which is nil there, as a key.")
            }
        } catch {
            throw converted(error)
        }
    }

    /// The bytes.
    func takeData() -> Data {
        writer.pointee.takeData()
    }

    /// Forgets the value that was encoded.
    ///
    /// Frames and boxes stay for the next.
    func reset() {
        writer.pointee.count = 0
        writer.pointee.mayHaveDuplicates = false
        if !userInfo.isEmpty { userInfo = [:] }
    }

    /// Lets go of the frames, which hold the state.
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
    /// `layers` counts the single-value containers around it: a nil below some of them is written so that it differs
    /// from a nil of the outermost.
    func encode<T: Encodable>(_ value: T, layers: Int = 0, isRoot: Bool = false) throws {
        if try writeKnown(value) { return }
        try encodeCustom(value, layers: layers, isRoot: isRoot)
    }

    /// Writes an element of `frame`, most often one of the same type as the last.
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
            let converted = converted(error)
            close(downTo: slot)
            throw converted
        }
        if frame.form == .undecided {
            if isRoot {
                throw CBORRefusal(String(describing: T.self), "Top-level \(T.self) did not encode any values.")
            }
            writer.pointee.write(byte: CBORFormat.emptyMap)
        }
        // Most often nothing else is open.
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

    /// Ends the innermost frame: its head gets its count.
    @inline(__always)
    func end(_ frame: CBOREncodingFrame) {
        if frame.form == .undecided, frame.role == .nested { writer.pointee.write(byte: CBORFormat.emptyMap) }
        finishHead(frame)
        frame.slot = CBOREncodingFrame.closed
        writer.pointee.top &-= 1
    }

    /// Puts the number of elements into a container's head, which was left one byte long.
    private func finishHead(_ frame: CBOREncodingFrame) {
        guard frame.form == .map || frame.form == .array else { return }
        let major = frame.form == .map ? CBORFormat.Major.map : CBORFormat.Major.array
        if frame.count < 24 {
            base.storeBytes(of: major | UInt8(frame.count), toByteOffset: frame.header, as: UInt8.self)
        } else {
            resizeHead(at: frame.header, from: 1, major: major, elements: frame.count)
        }
    }

    /// Discards the current element of `frame`, with all that is open above it.
    func rollBack(_ frame: CBOREncodingFrame) {
        guard frame.slot >= 0 else { return }
        close(downTo: frame.slot + 1)
        count = frame.element
        frame.count -= 1
    }
}
