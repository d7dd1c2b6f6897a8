/// What the decoder of a value holds to its frame by.
///
/// Only its frame holds it, and only while that is one of its state's, so when a call of `decode` ends it can be seen
/// whether somebody kept a decoder.
final class CBORDecodingHandle {
    let frame: CBORDecodingFrame

    init(_ frame: CBORDecodingFrame) {
        self.frame = frame
    }
}
