import Foundation

// Compiled together with the sources of the coder, so that they carry the sanitizer's and the fuzzer's instrumentation.

struct Leaf: Codable {
    var integer: Int
    var text: String?
    var number: Double
    var date: Date?
}

enum Branch: Codable {
    case one(Leaf)
    case many([Branch])
    case named(name: String, leaf: Leaf?)
    case nothing
}

struct Tree: Codable {
    var branches: [Branch]
    var byName: [String: Leaf]
    var byNumber: [Int: [Double]]
    var id: UUID?
    var url: URL?
    var decimal: Decimal?
    var bytes: Data?
    var raw: [UInt8]?
    var wide: Int128?
    var deep: Int???
    var set: Set<String>?
    var strings: [String: String]?
    var flags: [Bool?]?
}

/// Decodes as `type`; what decodes must encode, decode and encode again to the same bytes.
func attempt<T: Codable>(_ type: T.Type, _ data: Data, _ decoder: CBORDecoder, _ encoder: CBOREncoder) {
    let value: T
    do {
        value = try decoder.decode(type, from: data)
    } catch {
        // Described, because describing walks the coding path.
        precondition(!"\(error)".isEmpty)
        return
    }
    do {
        let bytes = try encoder.encode(value)
        let again = try encoder.encode(try decoder.decode(type, from: bytes))
        precondition(bytes == again, "\(type): another encoding the second time")
    } catch {
        preconditionFailure("\(type): what was decoded does not come back: \(error)")
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    let decoder = CBORDecoder()
    var encoder = CBOREncoder()
    encoder.isDeterministic = true
    attempt(Tree.self, data, decoder, encoder)
    attempt([Branch].self, data, decoder, encoder)
    attempt([String: Leaf].self, data, decoder, encoder)
    attempt([Int: String].self, data, decoder, encoder)
    attempt([String].self, data, decoder, encoder)
    attempt([Double].self, data, decoder, encoder)
    attempt([Date].self, data, decoder, encoder)
    attempt([URL].self, data, decoder, encoder)
    attempt([Decimal].self, data, decoder, encoder)
    attempt([Int128?].self, data, decoder, encoder)
    attempt(Data.self, data, decoder, encoder)
    attempt(Leaf.self, data, decoder, encoder)
    return 0
}
