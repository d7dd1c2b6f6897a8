/// The reason why a value cannot be written.
///
/// The containers turn it into an `EncodingError`, with the coding path.
struct CBORRefusal: Error {
    let value: any Sendable
    let description: String

    init(_ value: any Sendable, _ description: String) {
        self.value = value
        self.description = description
    }

    static func tooDeep(_ type: Any.Type) -> CBORRefusal {
        CBORRefusal(
            String(describing: type),
            "Nested more than \(CBORFormat.maximumDepth) levels deep, or more than the stack of this thread has room for."
        )
    }

    static var nestedNil: CBORRefusal {
        CBORRefusal(Int?.none, "A nil inside an optional that is not nil itself would come back as the outer one.")
    }
}
