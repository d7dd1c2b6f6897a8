import Foundation

/// The state of one call of `decode`: the bytes, and the frames of the values that are being decoded.
///
/// Values are read straight from the bytes, without a tree between. Containers store their places as offsets and hold
/// the state strongly. So the bytes can be copied to private memory if one of them is kept.
///
/// Safety: `input`, `frames` and `makers` are allocated in `init` and freed in `deinit`; all their users hold the
/// state. The bytes are the caller's during a call of `decode`; if a decoder or container is kept, `keepBytes` copies
/// them first. No access to `frames` spans a call of user code.
final class CBORDecodingState: CBORReusableState {
    /// A reader at the start of the bytes, reached by a pointer that frames store.
    ///
    /// Frames hold the state, so the pointer is valid as long as they are. A read through it costs no reference count.
    let input: UnsafeMutablePointer<CBORReader>
    private(set) var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// The frames: those below `top` are open, the others wait for the next value.
    let frames: UnsafeMutablePointer<[CBORDecodingFrame]>
    let makers: UnsafeMutablePointer<CBORContainerMakers>
    private var top = 0
    /// A Boolean value that indicates whether a decoder or container was kept.
    private var isKept = false
    private var stack = CBORStack()
    private var ownBytes: UnsafeMutableRawPointer?

    /// The offset of the end of the item that was decoded last.
    var end = 0

    init() {
        input = .allocate(capacity: 1)
        input.initialize(to: .empty)
        frames = .allocate(capacity: 1)
        frames.initialize(to: [])
        makers = .allocate(capacity: 1)
        makers.initialize(to: CBORContainerMakers())
    }

    /// Prepares the state for other bytes.
    func begin(base: UnsafeRawPointer, count: Int, userInfo: [CodingUserInfoKey: any Sendable]) {
        input.pointee = CBORReader(base: base, count: count, offset: 0)
        if !userInfo.isEmpty || !self.userInfo.isEmpty { self.userInfo = userInfo }
        // The next thread may have its stack at the address of an ended thread's.
        stack = CBORStack()
    }

    /// Forgets the bytes, unless a decoder or container was kept.
    ///
    /// - Returns: Whether the state may be used again.
    func reset() -> Bool {
        if isKept { return false }
        if frames.pointee.count > Self.mostFrames { frames.pointee.removeSubrange(Self.mostFrames...) }
        input.pointee = .empty
        if !userInfo.isEmpty { userInfo = [:] }
        return true
    }

    /// The number of frames that are kept for the next value.
    private static let mostFrames = 64

    deinit {
        input.deinitialize(count: 1)
        input.deallocate()
        frames.deinitialize(count: 1)
        frames.deallocate()
        makers.deinitialize(count: 1)
        makers.deallocate()
        ownBytes?.deallocate()
    }

    var base: UnsafeRawPointer { input.pointee.base }
    var count: Int { input.pointee.count }

    /// Releases the frames, which hold the state.
    func finish() {
        frames.pointee = []
        top = 0
    }

    /// Copies the bytes, so that the state no longer depends on the caller's memory.
    func keepBytes() {
        let copy = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 1)
        copy.copyMemory(from: base, byteCount: count)
        ownBytes = copy
        input.pointee = CBORReader(base: UnsafeRawPointer(copy), count: count, offset: 0)
    }

    // MARK: Values

    /// Decodes the value at `offset`, an element of `frame`'s value, and sets `end` to its end.
    ///
    /// `layers` counts the single-value containers around it.
    func decode<T: Decodable>(
        _ type: T.Type, at offset: Int, in frame: CBORDecodingFrame?, layers: Int = 0
    ) throws -> T {
        guard offset < count else { throw failure(CBORFault(.truncated, offset), type, in: frame) }
        // Each case ends in `decodeCustom`: an optional result would cost a look-up of its type for each value.
        switch base.load(fromByteOffset: offset, as: UInt8.self) & 0xE0 {
        case CBORFormat.Major.map: return try decodeMap(type, at: offset, in: frame, layers: layers)
        case CBORFormat.Major.array: return try decodeArray(type, at: offset, in: frame, layers: layers)
        default: return try decodeScalar(type, at: offset, in: frame, layers: layers)
        }
    }

    /// Calls the value's own `init(from:)`, with a frame.
    func decodeCustom<T: Decodable>(
        _ type: T.Type, at offset: Int, in parent: CBORDecodingFrame?, layers: Int
    ) throws -> T {
        try withFrame(type, at: offset, in: parent, layers: layers) { try T(from: CBORDecoding(frame: $0)) }
    }

    /// Calls `body` with a frame for the item at `offset`, and sets `end` to the item's end.
    @inline(__always)
    func withFrame<R>(
        _ type: Any.Type, at offset: Int, in parent: CBORDecodingFrame?, layers: Int = 0,
        _ body: (CBORDecodingFrame) throws -> R
    ) throws -> R {
        let depth = top
        // Runs after `run` has released the frame.
        defer { pop(to: depth) }
        return try run(push(type, at: offset, in: parent, layers: layers), type, body)
    }

    @inline(__always)
    private func run<R>(
        _ frame: CBORDecodingFrame, _ type: Any.Type, _ body: (CBORDecodingFrame) throws -> R
    ) throws -> R {
        let result = try body(frame)
        end = try frame.end(of: type)
        return result
    }

    /// Opens a frame for the item at `offset`.
    ///
    /// It stays open until the value that is being decoded has ended.
    @inline(__always)
    func push(
        _ type: Any.Type, at offset: Int, in parent: CBORDecodingFrame?, layers: Int = 0
    ) throws -> CBORDecodingFrame {
        if let parent, parent.depth >= CBORStack.trustedDepth, !stack.hasRoom(depth: parent.depth + 1) {
            throw failure(CBORFault(.tooDeep, offset), type, in: parent)
        }
        if let parent, parent.keptPath != nil { return frameOutside(type, at: offset, in: parent, layers: layers) }
        if top == frames.pointee.count { frames.pointee.append(CBORDecodingFrame(state: self)) }
        let frame = frames.pointee[top]
        frame.open(at: offset, in: parent, slot: top, layers: layers)
        frame.type = type
        top &+= 1
        return frame
    }

    /// Returns a frame inside a kept one: it is not in the stack, so that only its user holds it.
    @inline(never)
    private func frameOutside(
        _ type: Any.Type, at offset: Int, in parent: CBORDecodingFrame, layers: Int
    ) -> CBORDecodingFrame {
        let frame = CBORDecodingFrame(state: self)
        frame.open(at: offset, in: parent, slot: -1, layers: layers)
        frame.type = type
        frame.keepPath(parent.codingPath + parent.elementPath)
        return frame
    }

    /// Closes the frames from `depth` on.
    ///
    /// A frame that is still held is left to its holder.
    @inline(__always)
    private func pop(to depth: Int) {
        while top > depth {
            top &-= 1
            if !isKnownUniquelyReferenced(&frames.pointee[top]) { leave(frames.pointee[top]) }
        }
    }

    @inline(never)
    private func leave(_ frame: CBORDecodingFrame) {
        isKept = true
        frame.keepPath(frame.codingPath)
        frames.pointee[top] = CBORDecodingFrame(state: self)
    }

    // MARK: Errors

    /// Returns the error for `fault` at the current element of `frame`.
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
    /// Returns the kind of item at `offset`, for a message.
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
