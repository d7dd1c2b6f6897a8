/// One value or container that is being read.
///
/// Like its encoding twin it is used again, with the boxes of its keyed containers, as long as nobody else holds one of
/// them. A container that is kept for later keeps its frame, which still knows its place.
final class CBORDecodingFrame: CBORContainerBoxes {
    enum Form { case undecided, map, array }

    /// What stands for a step of the path: the offset of a key, the complement of an index, or this.
    static let noStep = Int.min

    let state: CBORDecodingState
    /// The state's, at hand.
    let input: UnsafeMutablePointer<CBORReader>
    private(set) var parent: CBORDecodingFrame? {
        didSet { parentAddress = parent?.address }
    }
    private var parentAddress: UnsafeRawPointer?
    /// How the parent got here.
    private(set) var step = CBORDecodingFrame.noStep
    /// The element that is being read, or was last.
    var element = CBORDecodingFrame.noStep

    /// Where the item begins, with its tags.
    private(set) var item = 0
    /// Tells one use of the frame from the next.
    private(set) var serial: UInt32 = 0
    private(set) var layers = 0
    /// How many values and containers lie around this one.
    private(set) var depth = 0
    var type: Any.Type = Never.self
    private(set) var form = Form.undecided

    /// Where the first element begins.
    private var first = 0
    /// Where the next element begins that was not read in order.
    private(set) var cursor = 0
    /// How many elements remain from there; -1 for an array of indefinite length.
    private(set) var remaining = 0
    private(set) var count = 0

    /// The keys read in order, a bit for each case of an enum of up to 64.
    private var seenKeys: UInt64 = 0
    /// A key was read in order that `seenKeys` does not tell from others.
    private var needsCheck = false
    /// Whose cases these are.
    private var keyType: ObjectIdentifier?
    /// All pairs, once a key was not where it was expected.
    ///
    /// No access to it spans code that is not ours, so nothing needs a check at run time, which cost a tenth of the
    /// time of a struct with optionals.
    @exclusivity(unchecked) private var index = CBORMapIndex()
    private var hasIndex = false
    /// The array that was read from this item, to know its end.
    private var array: CBORDecodingFrame?
    /// Arrays only: keeps the decoder that the array was asked from alive, and known to be.
    private var owner: CBORDecodingHandle?
    /// Where the item ends, known from a single value; else -1.
    var singleEnd = -1

    /// What the decoder of this value holds; nil where the frame is none of its state's.
    var handle: CBORDecodingHandle? {
        didSet { lentHandle = handle.map { Unmanaged.passUnretained($0) } }
    }
    /// The same: to read it costs no reference count.
    private(set) var lentHandle: Unmanaged<CBORDecodingHandle>?

    /// Its place among the state's frames, -1 if it is not, or no longer, one of them.
    var slot: Int
    /// The frame that the next value below took last.
    var nextFrame: CBORDecodingFrame? {
        didSet { next = nextFrame.map { Unmanaged.passUnretained($0) } }
    }
    /// The same: to read it costs no reference count.
    private var next: Unmanaged<CBORDecodingFrame>?

    init(state: CBORDecodingState, slot: Int) {
        self.state = state
        self.slot = slot
        input = state.input
    }

    func open(at offset: Int, in parent: CBORDecodingFrame?, layers: Int) {
        if let parent { return open(at: offset, inside: parent, layers: layers) }
        if self.parent != nil { self.parent = nil }
        step = CBORDecodingFrame.noStep
        depth = 0
        open(at: offset, layers: layers)
    }

    @inline(__always)
    func open(at offset: Int, inside parent: borrowing CBORDecodingFrame, layers: Int) {
        // Compared first: most often it is the same, and to assign costs a retain and a release.
        if parentAddress != parent.address { self.parent = copy parent }
        step = parent.element
        depth = parent.depth &+ 1
        open(at: offset, layers: layers)
    }

    @inline(__always)
    private func open(at offset: Int, layers: Int) {
        element = CBORDecodingFrame.noStep
        item = offset
        self.layers = layers
        serial &+= 1
        form = .undecided
        singleEnd = -1
        if array != nil { array = nil }
    }

    @inline(__always)
    private var address: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// Whether nobody else holds its decoder; arrays do, until they are forgotten.
    func isHandleOurs() -> Bool { handle == nil || isKnownUniquelyReferenced(&handle) }

    /// The frame for a value below this one, if it is the right one for this depth and free.
    ///
    /// Its state holds it until the value below has ended, so it costs no reference count to work with it.
    @inline(__always)
    func child(_ depth: Int) -> Unmanaged<CBORDecodingFrame>? {
        guard let next else { return nil }
        let isFree = next._withUnsafeGuaranteedRef { $0.slot == depth && $0.areBoxesOurs() }
        return isFree ? next : nil
    }

    /// Lets go of what belongs to the bytes: the arrays above and below.
    func forget() {
        if array != nil { array = nil }
        if let above = parent, above.slot < 0 { parent = nil }
    }

    func letGo() {
        removeBoxes()
        handle = nil
        nextFrame = nil
        parent = nil
        array = nil
    }

    // MARK: Containers

    /// - Parameter keys: Whose cases its pairs are about to be asked for.
    func beginMap(keys: ObjectIdentifier) throws(CBORFault) {
        if form == .map {
            // What was read by keys of another type is not known by the bits of these.
            if keyType != keys { (keyType, needsCheck) = (keys, true) }
            return
        }
        var reader = input.pointee.at(item)
        try reader.skipTags()
        let start = reader.offset
        let head = try reader.head()
        guard head.major == CBORFormat.Major.map else { throw reader.mismatch(at: start) }
        count = head.isIndefinite ? 0 : try reader.length(head, at: start, itemsPerElement: 2)
        first = reader.offset
        cursor = first
        remaining = count
        seenKeys = 0
        needsCheck = false
        keyType = keys
        hasIndex = false
        form = .map
        if head.isIndefinite {
            count = -1
            try makeIndex()
        }
    }

    /// A frame for the array that this item is; each has a place of its own.
    func makeArray(_ owner: CBORDecodingHandle?) throws(CBORFault) -> CBORDecodingFrame {
        var reader = input.pointee.at(item)
        try reader.skipTags()
        let start = reader.offset
        let head = try reader.head()
        guard head.major == CBORFormat.Major.array else { throw reader.mismatch(at: start) }
        let frame = CBORDecodingFrame(state: state, slot: -1)
        frame.owner = owner
        frame.parent = parent
        frame.step = step
        frame.depth = depth
        frame.item = item
        frame.form = .array
        frame.count = head.isIndefinite ? -1 : try reader.length(head, at: start)
        frame.remaining = frame.count
        frame.first = reader.offset
        frame.cursor = reader.offset
        frame.element = ~0
        array = frame
        return frame
    }

    /// Where the item ends, as ``finish()`` has it, with the error that a value's decoding throws.
    @inline(__always)
    func end(of type: Any.Type) throws -> Int {
        do throws(CBORFault) { return try finish() } catch { throw state.failure(error, type, in: parent) }
    }

    /// Where the item ends; what was not read is stepped over.
    func finish() throws(CBORFault) -> Int {
        if form == .map {
            if hasIndex { return index.end }
            if remaining == 0, !needsCheck { return cursor }
            if count == 1, !needsCheck { return try endOfOnlyPair() }
            try makeIndex()
            return index.end
        }
        if singleEnd >= 0 { return singleEnd }
        if let array { return try array.endOfArray() }
        var reader = input.pointee.at(item)
        try reader.skip()
        return reader.offset
    }

    // MARK: Pairs

    /// Where the value for `key` begins, or nil.
    @inline(__always)
    func find<Key: CodingKey>(_ key: Key) throws(CBORFault) -> Int? {
        if remaining > 0, !hasIndex, let value = input.pointee.matchKey(key.stringValue, at: cursor) {
            element = cursor
            return value
        }
        return try findElsewhere(key)
    }

    private func findElsewhere<Key: CodingKey>(_ key: Key) throws(CBORFault) -> Int? {
        if !hasIndex {
            // All were read in order, and this one was not among them.
            if remaining == 0, let bit = Self.bit(key), seenKeys & bit == 0, !needsCheck { return nil }
            try makeIndex()
        }
        var entry = index.find(key.stringValue, input.pointee)
        if entry == nil, let number = key.intValue { entry = index.find(number, input.pointee) }
        guard let entry else { return nil }
        element = entry.key
        return entry.value
    }

    /// The pair at `element` was read, and ends at `end`.
    @inline(__always)
    func advance<Key: CodingKey>(_ key: Key, to end: Int) {
        guard !hasIndex, element == cursor else { return }
        cursor = end
        remaining &-= 1
        if let bit = Self.bit(key) {
            if seenKeys & bit != 0 { needsCheck = true }
            seenKeys |= bit
        } else {
            needsCheck = true
        }
    }

    /// The bit of a key that is a case of an enum: one byte that differs where the case does.
    @inline(__always)
    private static func bit<Key: CodingKey>(_ key: Key) -> UInt64? {
        guard MemoryLayout<Key>.size <= 1 else { return nil }
        if MemoryLayout<Key>.size == 0 { return 1 }
        let number = unsafeBitCast(key, to: UInt8.self)
        return number < 64 ? 1 << UInt64(number) : nil
    }

    /// Finds all pairs, and refuses a map with a key that stands in it twice.
    func makeIndex() throws(CBORFault) {
        try index.build(input.pointee.at(first), count: count)
        hasIndex = true
    }

    func allKeys<Key: CodingKey>(_ type: Key.Type) throws(CBORFault) -> [Key] {
        // An enum with associated values: one pair, one key, and no need for an index.
        if count == 1, !hasIndex {
            var reader = input.pointee.at(first)
            if try reader.peek() & 0xE0 == CBORFormat.Major.text {
                guard let key = Key(stringValue: try reader.string()) else { return [] }
                return [key]
            }
        }
        if !hasIndex { try makeIndex() }
        // A copy: keys may be the user's code, which may come back here.
        let index = index
        return index.keys(type, input.pointee)
    }

    private func endOfOnlyPair() throws(CBORFault) -> Int {
        var reader = input.pointee.at(first)
        try reader.skip()
        try reader.skip()
        return reader.offset
    }

    // MARK: Elements

    /// Whether all elements of this array were read.
    var isAtEnd: Bool {
        if remaining >= 0 { return remaining == 0 }
        return input.pointee.at(cursor).isAtStop
    }

    /// The element at the cursor was read, and ends at `end`.
    @inline(__always)
    func advance(to end: Int) {
        cursor = end
        if remaining > 0 { remaining &-= 1 }
        element &-= 1  // the complement of the next index
    }

    /// So many elements were read, up to `end`, by whichever container is furthest.
    @inline(__always)
    func noteRead(_ index: Int, to end: Int) {
        if end <= cursor { return }
        cursor = end
        if count >= 0 { remaining = count &- index }
    }

    func endOfArray() throws(CBORFault) -> Int {
        var reader = input.pointee.at(cursor)
        if remaining < 0 {
            while try !reader.skipStop() { try reader.skip() }
        } else {
            for _ in 0..<remaining { try reader.skip() }
        }
        return reader.offset
    }
}
