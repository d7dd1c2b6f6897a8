import Foundation

// Containers may be filled in any order. A nested one may continue after its parent went on, two siblings in turns, and
// an encoder for the superclass at the very end. Bytes go in order, so a nested container whose parent writes again is
// closed. If it is still held, it is detached: it keeps its offset in the bytes, and later elements are moved there.
// All bytes after it move back, which is slow, but hardly any program does it.

extension CBOREncodingState {
    /// Writes into a container that is not the innermost: its nested ones end here, or it is detached itself.
    func writeAside(
        _ frame: CBOREncodingFrame, key: String?, _ body: (CBOREncodingState) throws -> Void
    ) throws {
        if frame.isDetached { return try insert(into: frame, key: key, body) }
        guard frame.slot >= 0 else { throw lateUseError() }
        guard makeInnermost(frame) else {
            throw error(Self.self, "A container was written to while one of its elements was being encoded.")
        }
        frame.element = count
        frame.count += 1
        if let key { writer.pointee.write(key) }
        do {
            try body(self)
        } catch {
            let converted = errorWithPath(error)
            rollBack(frame)
            throw converted
        }
    }

    /// Opens a container inside one that is not the innermost, or is not open.
    func openAside(_ frame: CBOREncodingFrame, key: String?, as form: CBOREncodingFrame.Form) -> CBOREncodingFrame {
        let child = CBOREncodingFrame(state: self)
        guard frame.isDetached else { return child }
        if let key, form != .undecided {
            let start = count
            writer.pointee.write(key)
            let earlier = reopen(in: frame, key: start..<count, as: form)
            count = start
            if let earlier { return earlier }
        }
        let path = frame.detachedPath + [key.map { CBORPathKey(text: $0) } ?? CBORPathKey(index: frame.count)]
        do {
            try insert(into: frame, key: key) { $0.writer.pointee.write(byte: CBORFormat.emptyMap) }
        } catch {
            // Writing a byte never fails.
            return child
        }
        detach(child, frame.end - 1..<frame.end, path)
        return child
    }

    /// Opens the nested container that `frame` has under `key` again, if it has the form `form`.
    ///
    /// New elements are added to the old ones, as with the encoders of Foundation.
    ///
    /// - Parameter key: The range of the bytes of the key, after the start of `frame`.
    func reopen(
        in frame: CBOREncodingFrame, key: Range<Int>, as form: CBOREncodingFrame.Form
    ) -> CBOREncodingFrame? {
        guard frame.form == .map else { return nil }
        var offset = frame.header + (frame.isDetached ? CBORWriter.headLength(frame.count) : 1)
        var found: Range<Int>?
        for _ in 0..<frame.count {
            let value = CBORMapSorter.end(self, of: offset)
            let end = CBORMapSorter.end(self, of: value)
            if CBORMapSorter.areEqual(self, offset..<value, key) { found = value..<end }
            offset = end
        }
        guard let place = found else { return nil }
        let (major, number, _) = CBORMapSorter.head(self, at: place.lowerBound)
        guard major == (form == .map ? CBORFormat.Major.map : CBORFormat.Major.array) else { return nil }
        if let kept = writer.pointee.detached.first(where: { $0.header == place.lowerBound }) {
            return kept.form == form ? kept : nil
        }
        let child = CBOREncodingFrame(state: self)
        child.form = form
        child.count = Int(number)
        detach(child, place, frame.codingPath + [CBORPathKey(text: text(at: key.lowerBound))])
        return child
    }

    /// Turns a frame into that of a closed container at `place`.
    private func detach(_ frame: CBOREncodingFrame, _ place: Range<Int>, _ path: [any CodingKey]) {
        frame.header = place.lowerBound
        frame.end = place.upperBound
        frame.isDetached = true
        frame.detachedPath = path
        writer.pointee.detached.append(frame)
    }

    /// Gives a detached super encoder its one value, in place of its empty map.
    func replaceAside(_ frame: CBOREncodingFrame, _ body: (CBOREncodingState) throws -> Void) throws {
        let start = count
        do {
            try body(self)
        } catch {
            let converted = errorWithPath(error, path: frame.detachedPath)
            count = start
            throw converted
        }
        frame.form = .single
        let length = count - start
        move(from: start, to: frame.end)
        shift(from: frame.end, by: length, inserting: frame)
        // The placeholder is removed.
        memmove(base + frame.header, base + frame.header + 1, count - frame.header - 1)
        count -= 1
        shift(from: frame.header + 1, by: -1, inserting: frame)
    }

    /// Closes the nested containers above `frame`; false if a value is still being encoded there.
    func makeInnermost(_ frame: CBOREncodingFrame) -> Bool {
        guard frame.slot >= 0 else { return false }
        for above in writer.pointee.frames[(frame.slot + 1)..<top] where above.role == .value { return false }
        while top - 1 > frame.slot { closeOrDetachInnermost() }
        return true
    }

    /// Ends the innermost frame; a frame that is still held is detached and takes later elements.
    private func closeOrDetachInnermost() {
        let isHeld = !isKnownUniquelyReferenced(&writer.pointee.frames[top - 1])
        let frame = writer.pointee.frames[top - 1]
        let path = isHeld ? frame.codingPath : []
        end(frame)
        if isHeld { detach(frame, frame.header..<count, path) }
    }

    /// Writes `elements` into a container's head, which has `length` bytes so far; the bytes after it move if needed.
    func resizeHead(at offset: Int, from length: Int, major: UInt8, elements: Int) {
        let growth = CBORWriter.headLength(elements) - length
        if growth > 0 {
            writer.pointee.reserve(growth)
            memmove(base + offset + length + growth, base + offset + length, count - offset - length)
            count += growth
            if !writer.pointee.detached.isEmpty { shift(from: offset + length, by: growth, inserting: nil) }
        }
        let end = count
        count = offset
        writer.pointee.write(head: major, UInt64(elements))
        count = end
    }

    /// Adds an element to a detached container.
    private func insert(
        into frame: CBOREncodingFrame, key: String?, _ body: (CBOREncodingState) throws -> Void
    ) throws {
        if frame.form == .undecided { frame.begin(.map) }
        let step = key.map { CBORPathKey(text: $0) } ?? CBORPathKey(index: frame.count)
        let start = count
        if let key { writer.pointee.write(key) }
        do {
            try body(self)
        } catch {
            let converted = errorWithPath(error, path: frame.detachedPath + [step])
            count = start
            throw converted
        }
        let length = count - start
        move(from: start, to: frame.end)
        shift(from: frame.end, by: length, inserting: frame)
        frame.count += 1
        resizeHead(
            at: frame.header, from: CBORWriter.headLength(frame.count - 1),
            major: frame.form == .map ? CBORFormat.Major.map : CBORFormat.Major.array, elements: frame.count)
    }

    /// Moves the end of the buffer, from `start` on, to `target`.
    private func move(from start: Int, to target: Int) {
        guard target < start else { return }
        let moved = Data(bytes: base + start, count: count - start)
        memmove(base + target + moved.count, base + target, start - target)
        moved.withUnsafeBytes { bytes in
            if let source = bytes.baseAddress { (base + target).copyMemory(from: source, byteCount: bytes.count) }
        }
    }

    /// Corrects stored offsets after `offset`.
    private func shift(from offset: Int, by length: Int, inserting owner: CBOREncodingFrame?) {
        for frame in writer.pointee.frames[..<top] {
            if frame.header >= offset { frame.header += length }
            if frame.element >= offset { frame.element += length }
        }
        shiftDetached(from: offset, by: length, inserting: owner)
    }

    /// Corrects the detached containers for bytes that were inserted or removed at `offset`.
    ///
    /// A container that ends at `offset` grows if it is `owner` or contains it; one inside it does not.
    private func shiftDetached(from offset: Int, by length: Int, inserting owner: CBOREncodingFrame?) {
        for frame in writer.pointee.detached {
            let isAround = owner.map { frame.header <= $0.header } ?? false
            if frame.end > offset || (frame.end == offset && isAround) { frame.end += length }
            if frame.header >= offset, frame !== owner { frame.header += length }
        }
    }
}
