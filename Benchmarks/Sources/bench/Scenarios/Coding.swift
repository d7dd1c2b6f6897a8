import Foundation
import Larder

/// The standard codec against Foundation's JSON, each with a coder that is kept.
///
/// Targets are those of the shapes: a ten-field struct, many small structs, optionals, enums with associated values.
var codingScenarios: [Scenario] {
    coding("article", CodingArticle.sample, operations: 500, encode: 1 / 9, decode: 1 / 5.5)
        + coding("small", (0..<10_000).map(CodingSmall.init), operations: 1, encode: 1 / 5, decode: 1 / 4)
        + coding("optionals", CodingOptionals.sample, operations: 1_000, encode: 1 / 5, decode: 1 / 5)
        + coding("enums", (0..<300).map(CodingShape.init), operations: 10, encode: 1 / 5, decode: 1 / 2.5)
}

private func coding<Value: Codable>(
    _ name: String, _ value: Value, operations: Int, encode: Double, decode: Double
) -> [Scenario] {
    func encoding(_ name: String, _ body: @escaping (Value) throws -> Data) -> Variant {
        Variant(name, operations: operations, once: { value }) { value in
            for _ in 0..<operations { precondition(succeeds { try body(value).count > 0 }) }
        }
    }
    func decoding(
        _ name: String, _ encode: (Value) throws -> Data, _ body: @escaping (Data) throws -> Value
    ) -> Variant {
        var data = Data()
        precondition(
            succeeds {
                data = try encode(value)
                return true
            })
        return Variant(name, operations: operations, once: { [data] in data }) { data in
            for _ in 0..<operations {
                precondition(succeeds { withExtendedLifetime(try body(data)) { true } })
            }
        }
    }
    let (cborEncoder, cborDecoder) = (CBOREncoder(), CBORDecoder())
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    return [
        Scenario(
            "coding-\(name)-encode", target: encode,
            [
                encoding("larder", cborEncoder.encode), encoding("json", jsonEncoder.encode),
                encoding("property list", listEncoder.encode),
            ]),
        Scenario(
            "coding-\(name)-decode", target: decode,
            [
                decoding("larder", cborEncoder.encode) { try cborDecoder.decode(Value.self, from: $0) },
                decoding("json", jsonEncoder.encode) { try jsonDecoder.decode(Value.self, from: $0) },
                decoding("property list", listEncoder.encode) { try listDecoder.decode(Value.self, from: $0) },
            ]),
    ]
}

private func succeeds(_ body: () throws -> Bool) -> Bool {
    do { return try body() } catch { return false }
}
