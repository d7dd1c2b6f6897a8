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

/// One value or container that is being read.
///
/// The decoder and the containers that user code gets hold their frame. A frame is used again for a later value only if
/// nothing else holds it. A decoder or container that is kept keeps its frame, which knows its offset in the bytes.
///
/// Safety: `input` belongs to `state`, which the frame holds. `index` belongs to the frame alone, and no access to it
/// spans a call of user code. Memory reached by a pointer needs no run-time check for exclusive access. These checks
/// took a seventh of the time of a small struct.
final class CBORDecodingFrame {
    enum Form { case undecided, map, array }

    /// The value of `step` and `element` if there is none.
    ///
    /// Other values are the offset of a key or the complement of an index.
    static let noStep = Int.min

    let state: CBORDecodingState
    /// The reader of `state`.
    let input: UnsafeMutablePointer<CBORReader>
    /// The index of the parent in the state's stack, or -1.
    private var parent = -1
    /// Its own index there.
    private var slot = 0
    /// The coding path, if the frame is not in the stack: it is kept, or inside one that is.
    private(set) var keptPath: [any CodingKey]?
    /// The parent's step to this frame.
    private var step = CBORDecodingFrame.noStep
    /// The element that is being read, or was read last.
    var element = CBORDecodingFrame.noStep

    /// The offset of the item, with its tags.
    private(set) var item = 0
    private(set) var layers = 0
    /// The number of values and containers around this one.
    private(set) var depth = 0
    var type: Any.Type = Never.self
    private var form = Form.undecided

    /// The offset of the first element.
    private(set) var first = 0
    /// The offset of the next element: of a map, if all before were read in order; of an array, after the elements that
    /// were read.
    private var cursor = 0
    /// The number of elements from `cursor` on; of an array of indefinite length, negative.
    private var remaining = 0
    /// The number of elements, or -1 if only the end determines it.
    private(set) var count = 0
    /// The offset of the value that was found last.
    private var value = 0

    /// A Boolean value that indicates whether a key was read in order that `keys` cannot distinguish from others.
    private var needsCheck = false
    /// The keys read in order, and all pairs if a key was not at its expected place.
    private let index: UnsafeMutablePointer<CBORMapIndex>
    private var hasIndex = false
    /// The offset of the item's end, if a single value was read; else -1.
    var singleEnd = -1

    init(state: CBORDecodingState) {
        self.state = state
        input = state.input
        index = .allocate(capacity: 1)
        index.initialize(to: CBORMapIndex())
    }

    deinit {
        index.deinitialize(count: 1)
        index.deallocate()
    }

    @inline(__always)
    func open(at offset: Int, in parent: CBORDecodingFrame?, slot: Int, layers: Int) {
        self.slot = slot
        self.parent = parent?.slot ?? -1
        step = parent?.element ?? CBORDecodingFrame.noStep
        depth = parent.map { $0.depth &+ 1 } ?? 0
        element = CBORDecodingFrame.noStep
        item = offset
        self.layers = layers
        form = .undecided
        singleEnd = -1
    }

    /// Keeps the path, because the frame is not in the stack.
    func keepPath(_ path: [any CodingKey]) { keptPath = path }

    // MARK: Forms

    @inline(__always)
    func becomeMap() throws -> CBORDecodingFrame {
        do throws(CBORFault) {
            if form != .map { try beginMap() }
            return self
        } catch {
            throw failure(error, [String: Any].self)
        }
    }

    func becomeArray() throws -> CBORDecodingFrame {
        do throws(CBORFault) {
            if form != .array { try beginArray() }
            return self
        } catch {
            throw failure(error, [Any].self)
        }
    }

    private func failure(_ fault: CBORFault, _ type: Any.Type) -> DecodingError {
        element = Self.noStep
        return state.failure(fault, type, in: self)
    }

    private func beginMap() throws(CBORFault) {
        try begin(.map, CBORFormat.Major.map, itemsPerElement: 2)
        index.pointee.keys.removeAll()
        needsCheck = false
        hasIndex = false
        if count < 0 { try makeIndex() }
    }

    private func beginArray() throws(CBORFault) {
        try begin(.array, CBORFormat.Major.array, itemsPerElement: 1)
    }

    @inline(__always)
    private func begin(_ form: Form, _ major: UInt8, itemsPerElement: UInt64) throws(CBORFault) {
        var reader = input.pointee.at(item)
        try reader.skipTags()
        let start = reader.offset
        let head = try reader.head()
        guard head.major == major else { throw reader.mismatch(at: start) }
        count = head.isIndefinite ? -1 : try reader.length(head, at: start, itemsPerElement: itemsPerElement)
        first = reader.offset
        cursor = first
        remaining = count
        self.form = form
    }

    /// Returns the offset of the item's end, or throws the error of the value's decoding.
    @inline(__always)
    func end(of type: Any.Type) throws -> Int {
        do throws(CBORFault) {
            return try end()
        } catch {
            element = Self.noStep
            throw state.failure(error, type, in: self)
        }
    }

    /// Returns the offset of the item's end; unread elements are skipped.
    private func end() throws(CBORFault) -> Int {
        switch form {
        case .map:
            if !hasIndex {
                if remaining == 0, !needsCheck { return cursor }
                if count == 1, !needsCheck { return try endOfPair() }
                try makeIndex()
            }
            return index.pointee.end
        case .array: return try endOfArray()
        case .undecided: return singleEnd >= 0 ? singleEnd : try input.pointee.endOfItem(at: item)
        }
    }

    private func endOfPair() throws(CBORFault) -> Int {
        try input.pointee.endOfItem(at: try input.pointee.endOfItem(at: first))
    }

    private func endOfArray() throws(CBORFault) -> Int {
        var reader = input.pointee.at(cursor)
        if remaining < 0 {
            while try !reader.skipStop() { try reader.skip() }
        } else {
            for _ in 0..<remaining { try reader.skip() }
        }
        return reader.offset
    }

    // MARK: Pairs

    /// Returns the offset of the value for `key`, or nil.
    @inline(__always)
    func find<Key: CodingKey>(_ key: Key) throws(CBORFault) -> Int? {
        if remaining > 0, !hasIndex, let value = input.pointee.matchKey(key.stringValue, at: cursor) {
            element = cursor
            self.value = value
            return value
        }
        return try findElsewhere(key)
    }

    private func findElsewhere<Key: CodingKey>(_ key: Key) throws(CBORFault) -> Int? {
        let text = key.stringValue
        if !hasIndex {
            // All keys were read in order, and this one was not among them.
            if remaining == 0, !needsCheck, !index.pointee.keys.contains(CBORKeySet.digest(text)) { return nil }
            try makeIndex()
        }
        guard let entry = index.pointee.find(text, key.intValue, input.pointee) else { return nil }
        element = entry.key
        return entry.value
    }

    /// The pair at `element` was read, and ends at `end`.
    @inline(__always)
    func advance(to end: Int) {
        guard !hasIndex, element == cursor else { return }
        if let digest = input.pointee.digestOfPlainText(cursor..<value) {
            if !index.pointee.keys.insert(digest) { needsCheck = true }
        } else {
            needsCheck = true
        }
        cursor = end
        remaining &-= 1
    }

    /// Finds all pairs, and refuses a map with a duplicate key.
    private func makeIndex() throws(CBORFault) {
        try index.pointee.build(input.pointee.at(first), count: count)
        hasIndex = true
    }

    func allKeys<Key: CodingKey>(_ type: Key.Type) throws(CBORFault) -> [Key] {
        // An enum with associated values has one pair and one key, and needs no index.
        if count == 1, !hasIndex {
            var reader = input.pointee.at(first)
            if try reader.peek() & 0xE0 == CBORFormat.Major.text {
                return Key(stringValue: try reader.string()).map { [$0] } ?? []
            }
        }
        if !hasIndex { try makeIndex() }
        // A copy: the initializers of keys may be user code, which may call this frame.
        let pairs = index.pointee
        return pairs.allKeys(type, input.pointee)
    }

    // MARK: Elements

    /// A Boolean value that indicates whether an array has no element after the first `index`, which end at `offset`.
    @inline(__always)
    func isAtEnd(after index: Int, at offset: Int) -> Bool {
        count >= 0 ? index == count : input.pointee.at(offset).isAtStop
    }

    /// The elements before `index` were read, up to `end`, by one of the containers of this array.
    @inline(__always)
    func noteRead(_ index: Int, to end: Int) {
        if end <= cursor { return }
        cursor = end
        if count >= 0 { remaining = count &- index }
    }

    // MARK: Paths

    /// The coding path of this value or container, read back from the bytes.
    var codingPath: [any CodingKey] {
        var steps: [any CodingKey] = []
        var frame = self
        while frame.keptPath == nil, frame.parent >= 0 {
            steps += frame.key(of: frame.step)
            frame = state.frames.pointee[frame.parent]
        }
        return (frame.keptPath ?? []) + steps.reversed()
    }

    /// The step to the element that is being read.
    var elementPath: [any CodingKey] { key(of: element) }

    private func key(of step: Int) -> [any CodingKey] {
        if step == Self.noStep { return [] }
        if step < 0 { return [CBORPathKey(index: ~step)] }
        return input.pointee.at(step).pathKey.map { [$0] } ?? []
    }
}
