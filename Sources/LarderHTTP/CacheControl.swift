/// The directives of `Cache-Control`, by their names in lower case; of several with one name the first counts, or the strict one.
struct CacheControl {
    private var values: [String: String] = [:]

    init() {}

    /// The directives of a field as RFC 9111 has them: a token, or one with a token or a quoted text.
    init(_ field: String?) {
        for element in FieldList.elements(of: field) {
            let name = element.prefix { $0 != "=" }
            var value = String(element.dropFirst(name.count + 1))
            if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
                value = Self.unquoted(value.dropFirst().dropLast())
            }
            set(name.lowercased(), value)
        }
    }

    /// The directives of a targeted field, which is a dictionary of structured fields; nil if it is empty or no such one.
    init?(targeted field: String?) {
        guard let field, let entries = StructuredFields.dictionary(field), !entries.isEmpty else { return nil }
        for (name, item) in entries {
            switch item {
            case .boolean(true): set(name, "")
            // A lifetime of another type is none that one can go by.
            case .integer(let number) where number >= 0: set(name, "\(number)")
            case .boolean(false): break
            case .token(let text), .string(let text): if !Self.lifetimes.contains(name) { set(name, text) }
            case .integer, .other: break
            }
        }
    }

    private static let lifetimes = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    private mutating func set(_ name: String, _ value: String) {
        // What holds for the whole response is stricter than what holds for some of its fields.
        if values[name] == nil || value.isEmpty && ["private", "no-cache"].contains(name) { values[name] = value }
    }

    private static func unquoted(_ text: Substring) -> String {
        var (result, isEscaped) = ("", false)
        for character in text {
            if !isEscaped && character == "\\" {
                isEscaped = true
            } else {
                result.append(character)
                isEscaped = false
            }
        }
        return result
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// A Boolean value that indicates whether a directive holds for the whole response, and not for fields that it names.
    func isWhole(_ name: String) -> Bool { values[name] == "" }

    /// The fields that a directive names.
    func fields(_ name: String) -> [String] { FieldList.elements(of: values[name]) }

    /// The milliseconds of a directive; nil if it is not there, and 0 if it is no number of seconds: such a response is stale.
    func milliseconds(_ name: String) -> Int64? { values[name].map { Self.milliseconds($0) ?? 0 } }

    /// The milliseconds of a directive; nil if it is not there or no number of seconds.
    func validMilliseconds(_ name: String) -> Int64? { values[name].flatMap { Self.milliseconds($0) } }

    /// The milliseconds of a number of seconds, at most some hundred years; nil for what is none.
    static func milliseconds(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
        return min(Int64(text) ?? .max, 1 << 33) * 1000
    }
}
