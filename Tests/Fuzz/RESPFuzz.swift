import Foundation

/// Replies are the same in whatever pieces they arrive, and nonsense is a fault: no trap, no memory that is only announced.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let (pieces, text) = (Int(bytes[0]) % 16 + 1, bytes.dropFirst())
    let (whole, split) = (replies(text, pieces: .max), replies(text, pieces: pieces))
    // A fault is met as early as its bytes are there, and not after replies that follow it.
    precondition(whole.values == split.values && whole.isFault == split.isFault)
    return 0
}

private func replies(_ bytes: ArraySlice<UInt8>, pieces: Int) -> (values: [RESPValue], isFault: Bool) {
    var (parser, values, rest) = (RESPParser(byteLimit: 1 << 20), [RESPValue](), bytes)
    do {
        while !rest.isEmpty {
            parser.append(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            while let value = try parser.next() { values.append(value) }
        }
    } catch {
        return (values, true)
    }
    return (values, false)
}
