import Foundation

/// What one call of `decode` works on: the bytes, and the frames of the values that are being decoded.
///
/// Values are read straight from the bytes, without a tree between. Containers know their places as offsets and hold
/// the state strongly, so that the bytes can be moved to memory of our own when one of them is kept.
final class CBORDecodingState: CBORReusableState {
    /// A reader at the start of the bytes, behind a pointer that frames have at hand.
    ///
    /// They hold the state, so the pointer is good for as long as they are, and to read through it costs no reference
    /// count.
    let input: UnsafeMutablePointer<CBORReader>
    private(set) var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Frames by depth; those from `top` on wait to be used again, with their boxes.
    private var frames: [CBORDecodingFrame] = []
    private var top = 0
    /// Something was handed out of which nobody knows whether it was kept.
    var mayBeKept = false
    private var isFinished = false
    private var stack = CBORStack()
    private var ownBytes: UnsafeMutableRawPointer?

    /// Where the item that was decoded last ends.
    var end = 0

    init() {
        input = .allocate(capacity: 1)
        input.initialize(to: .empty)
    }

    /// Makes ready for other bytes.
    func begin(base: UnsafeRawPointer, count: Int, userInfo: [CodingUserInfoKey: any Sendable]) {
        input.pointee = CBORReader(base: base, count: count, offset: 0)
        if !userInfo.isEmpty || !self.userInfo.isEmpty { self.userInfo = userInfo }
        // The next thread may have a stack where that of one which ended was.
        stack = CBORStack()
    }

    /// Forgets the bytes, if nobody kept a decoder or a container: then the state may be used again.
    func reset() -> Bool {
        if mayBeKept { return false }
        for frame in frames where !frame.areBoxesOurs() { return false }
        for frame in frames { frame.forget() }
        // An array that somebody kept still holds the decoder that it was asked from.
        for frame in frames where !frame.isHandleOurs() { return false }
        if frames.count > Self.mostKept { trim() }
        input.pointee = .empty
        if !userInfo.isEmpty { userInfo = [:] }
        return true
    }

    /// More frames than this are not kept: each call looks at them all.
    private static let mostKept = 64

    /// Lets go of the frames that a value with many containers side by side has left.
    @inline(never)
    private func trim() {
        for frame in frames[Self.mostKept...] {
            frame.letGo()
            frame.slot = -1
        }
        frames.removeSubrange(Self.mostKept...)
    }

    deinit {
        input.deinitialize(count: 1)
        input.deallocate()
        ownBytes?.deallocate()
    }

    var base: UnsafeRawPointer { input.pointee.base }
    var count: Int { input.pointee.count }

    @inline(__always)
    func reader(at offset: Int) -> CBORReader {
        input.pointee.at(offset)
    }

    /// Lets go of the frames, which hold the state.
    func finish() {
        for frame in frames {
            frame.letGo()
            frame.slot = -1
        }
        frames = []
        top = 0
        isFinished = true
    }

    /// Makes the state independent of the caller's memory.
    func keepBytes() {
        let copy = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 1)
        copy.copyMemory(from: base, byteCount: count)
        ownBytes = copy
        input.pointee = CBORReader(base: UnsafeRawPointer(copy), count: count, offset: 0)
    }

    // MARK: Values

    /// The value at `offset`, an element of `frame`'s value; `end` is where it ends.
    ///
    /// `layers` counts the single-value containers around it.
    func decode<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int = 0
    ) throws -> T {
        guard offset < count else { throw failure(CBORFault(.truncated, offset), type, in: frame) }
        // Each ends in `decodeCustom`: an optional result would cost a look-up of its type for each value.
        switch base.load(fromByteOffset: offset, as: UInt8.self) & 0xE0 {
        case CBORFormat.Major.map: return try decodeMap(type, at: offset, in: frame, layers: layers)
        case CBORFormat.Major.array: return try decodeArray(type, at: offset, in: frame, layers: layers)
        default: return try decodeScalar(type, at: offset, in: frame, layers: layers)
        }
    }

    /// Lets a value read itself.
    ///
    /// Most often on a frame that was used before, and that stands among the state's until the value has ended: half of
    /// the time of a small struct goes into reference counts, and that way has three less.
    func decodeCustom<T: Decodable>(
        _ type: T.Type, at offset: Int, in parent: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        guard let parent else { return try decodeOnNewFrame(type, at: offset, in: nil, layers: layers) }
        return try decodeCustom(type, at: offset, inside: parent, layers: layers)
    }

    /// The same for an element of `parent`'s value: what is borrowed is not counted.
    @inline(__always)
    func decodeCustom<T: Decodable>(
        _ type: T.Type, at offset: Int, inside parent: borrowing CBORDecodingFrame, layers: Int
    ) throws -> T {
        try checkDepth(type, at: offset, in: parent)
        let depth = top
        guard let frame = parent.child(depth), let handle = frame._withUnsafeGuaranteedRef({ $0.lentHandle }) else {
            return try decodeOnNewFrame(type, at: offset, in: copy parent, layers: layers)
        }
        top = depth &+ 1
        defer { top = depth }
        let serial = frame._withUnsafeGuaranteedRef { frame in
            frame.open(at: offset, inside: parent, layers: layers)
            frame.type = type
            return frame.serial
        }
        let value = try T(
            from: CBORDecoding(
                handle: handle.takeUnretainedValue(), item: offset, serial: serial, layers: UInt32(layers)))
        end = try frame._withUnsafeGuaranteedRef { try $0.end(of: type) }
        return value
    }

    @inline(never)
    private func decodeOnNewFrame<T: Decodable>(
        _ type: T.Type, at offset: Int, in parent: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        let depth = top
        let frame = push(at: offset, in: parent, layers: layers)
        frame.type = type
        defer { top = depth }
        let handle = frame.handle ?? CBORDecodingHandle(frame)
        let value = try T(
            from: CBORDecoding(handle: handle, item: offset, serial: frame.serial, layers: UInt32(layers)))
        end = try frame.end(of: type)
        return value
    }

    /// Refuses what lies in `parent` if it lies too deep.
    @inline(__always)
    func checkDepth(_ type: Any.Type, at offset: Int, in parent: borrowing CBORDecodingFrame) throws {
        guard parent.depth < CBORStack.trustedDepth || stack.hasRoom(depth: parent.depth &+ 1) else {
            throw failure(CBORFault(.tooDeep, offset), type, in: copy parent)
        }
    }

    /// A frame for the next depth, one used before where nobody can still hold its containers.
    ///
    /// It stays taken until the value whose decoding is going on has ended.
    @inline(__always)
    func push(at offset: Int, in parent: CBORDecodingFrame?, layers: Int = 0) -> CBORDecodingFrame {
        let frame = parent?.child(top)?.takeUnretainedValue() ?? nextFrame(for: parent)
        top &+= 1
        frame.open(at: offset, in: parent, layers: layers)
        return frame
    }

    @inline(never)
    private func nextFrame(for parent: CBORDecodingFrame?) -> CBORDecodingFrame {
        // After the end frames would be kept for nothing, and keep the state.
        if isFinished { return CBORDecodingFrame(state: self, slot: -1) }
        if top == frames.count {
            let frame = CBORDecodingFrame(state: self, slot: top)
            frame.handle = CBORDecodingHandle(frame)
            frames.append(frame)
        } else if !frames[top].areBoxesOurs() {
            mayBeKept = true
            frames[top].slot = -1
            frames[top].handle = nil
            frames[top].nextFrame = nil
            // Each box holds its frame; who kept one holds it now.
            frames[top].removeBoxes()
            frames[top] = CBORDecodingFrame(state: self, slot: top)
            frames[top].handle = CBORDecodingHandle(frames[top])
        }
        parent?.nextFrame = frames[top]
        return frames[top]
    }

    // MARK: Errors

    /// The error for `fault`, met while the current element of `frame` was read.
    func failure(_ fault: CBORFault, _ type: Any.Type, in frame: CBORDecodingFrame?) -> DecodingError {
        let path = frame.map { $0.codingPath + $0.elementPath } ?? []
        switch fault.kind {
        case .mismatch:
            let found = CBORReader.name(ofItemAt: fault.offset, in: self)
            return .typeMismatch(type, context(path, "Expected \(type), found \(found)", fault))
        case .null: return .valueNotFound(type, context(path, "Expected \(type), found null", fault))
        default: return .dataCorrupted(context(path, fault.description, fault))
        }
    }

    private func context(_ path: [any CodingKey], _ text: String, _ fault: CBORFault) -> DecodingError.Context {
        DecodingError.Context(codingPath: path, debugDescription: "\(text), at byte \(fault.offset) of \(count).")
    }
}

extension CBORReader {
    /// What stands at `offset`, for a message.
    fileprivate static func name(ofItemAt offset: Int, in state: CBORDecodingState) -> String {
        guard offset < state.count else { return "nothing" }
        switch state.base.load(fromByteOffset: offset, as: UInt8.self) & 0xE0 {
        case CBORFormat.Major.unsigned, CBORFormat.Major.negative: return "an integer"
        case CBORFormat.Major.bytes: return "a byte string"
        case CBORFormat.Major.text: return "text"
        case CBORFormat.Major.array: return "an array"
        case CBORFormat.Major.map: return "a map"
        case CBORFormat.Major.tag: return "a tagged item"
        default: return "a simple value or a floating-point number"
        }
    }
}
