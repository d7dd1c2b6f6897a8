import Foundation

/// Fields of any bytes are read without a trap, and what was read is read again from what is written.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 0 else { return 0 }
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    let elements = FieldList.elements(of: text)
    precondition(elements.allSatisfy { !$0.isEmpty })
    let control = CacheControl(text)
    for name in ["max-age", "s-maxage", "no-cache"] {
        if let age = control.milliseconds(name) { precondition(age >= 0) }
        _ = control.fields(name)
    }
    _ = CacheControl(targeted: text)
    if let entries = StructuredFields.dictionary(text) {
        for case .string(let value) in entries.values {
            let written = "a=" + StructuredFields.string(value)
            precondition(StructuredFields.dictionary(written) == ["a": .string(value)])
        }
    }
    if let moment = HTTPDate.milliseconds(text, now: 1_700_000_000_000) {
        precondition(HTTPDate.milliseconds(HTTPDate.text(moment), now: 1_700_000_000_000) == moment)
    }
    if let url = URL(string: text), !HTTPPlace(url).host.isEmpty {
        let key = HTTPKeys.key(HTTPPlace(url), in: nil)
        precondition(!key.contains("#"))
        let request = HTTPRequest(url, fields: [("a", text)])
        precondition(
            HTTPKeys.variant(["a"], of: request, under: key) != HTTPKeys.variant(["b"], of: request, under: key))
    }
    return 0
}
