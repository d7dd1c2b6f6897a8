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
