internal import Foundation

/// What is wrong with a call, or with what it met, and the status with which the command ends.
struct Failure: Error {
    let status: Int32
    let message: String

    init(_ status: Int32, _ message: String) { (self.status, self.message) = (status, message) }

    /// A call that is wrong.
    static func usage(_ message: String) -> Failure { Failure(64, message) }
}

/// A verb of the command.
struct Verb: Sendable {
    let name: String
    /// The words behind it: `STORE [CACHE]`.
    let words: String
    let summary: String
    /// The options that stand alone.
    var flags: [String] = []
    /// The options with a value.
    var values: [String] = []
    /// The options of all verbs that this one has too, unless it changes the store.
    var common = ["--json", "--redact", "--at"]
    /// A Boolean value that indicates whether the verb changes the store.
    var isChange = false
    let run: @Sendable (Arguments) throws -> Int32

    /// All options that stand alone, and all that have a value.
    var allFlags: [String] { flags + (isChange ? ["-n", "--yes"] : common.filter { $0 != "--at" }) }
    var allValues: [String] { values + (isChange ? [] : common.filter { $0 == "--at" }) }

    fileprivate var wordCount: ClosedRange<Int> {
        let all = words.split(separator: " ")
        return all.filter { !$0.hasPrefix("[") }.count...(words.hasSuffix("...]") ? .max : all.count)
    }
}

/// The words and options of a call.
struct Arguments {
    private(set) var words: [String] = []
    /// A Boolean value that indicates whether the verb changes a store.
    let isChange: Bool
    private var flags: Set<String> = []
    private var values: [String: String] = [:]

    /// Throws if an option is not one of the verb's, lacks its value, or if there are too few or too many words.
    ///
    /// Behind `--` everything is a word.
    init(_ arguments: some Sequence<String>, of verb: Verb) throws(Failure) {
        isChange = verb.isChange
        var rest = Array(arguments)[...]
        var isOver = false
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            if isOver || !argument.hasPrefix("-") || argument == "-" {
                words.append(argument)
            } else if argument == "--" {
                isOver = true
            } else if verb.allValues.contains(parts[0]) {
                guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
                    throw .usage("“\(parts[0])” needs a value: larder \(verb.name) \(verb.words) \(parts[0]) …")
                }
                values[parts[0]] = value
            } else if verb.allFlags.contains(argument) {
                flags.insert(argument)
            } else if Int64(argument) != nil {
                words.append(argument)
            } else {
                let all = (verb.allFlags + verb.allValues).joined(separator: " ")
                throw .usage("“\(argument)” is no option of “\(verb.name)”. It has: \(all.isEmpty ? "none" : all)")
            }
        }
        if !verb.wordCount.contains(words.count) {
            throw .usage("“\(verb.name)” is called as: larder \(verb.name) \(verb.words)")
        }
    }

    /// The word at a place; nil if there are fewer.
    subscript(place: Int) -> String? { place < words.count ? words[place] : nil }

    func has(_ flag: String) -> Bool { flags.contains(flag) }

    func value(_ name: String) -> String? { values[name] }

    /// The number that an option has, 0 or more.
    func number(_ name: String) throws(Failure) -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = Int(text), number >= 0 else {
            throw .usage("“\(name)” takes a number, and “\(text)” is none.")
        }
        return number
    }

    /// The bytes that an option has: `300`, `64K`, `1.5M`, `2G`.
    func bytes(_ name: String) throws(Failure) -> Int64? {
        try scaled(
            name, ["": 1, "B": 1, "K": 1_024, "M": 1_048_576, "G": 1_073_741_824], "a size, such as 64K or 1.5M")
    }

    /// The milliseconds that an option has: `90s`, `15m`, `2h`, `7d`.
    func milliseconds(_ name: String) throws(Failure) -> Int64? {
        try scaled(name, ["s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000], "an age, such as 90s, 2h or 7d")
    }

    private func scaled(_ name: String, _ units: [String: Double], _ form: String) throws(Failure) -> Int64? {
        guard let text = values[name] else { return nil }
        let digits = text.prefix { $0.isNumber || $0 == "." }
        guard let number = Double(digits), let unit = units[String(text.dropFirst(digits.count))],
            number * unit < 9e18
        else {
            throw .usage("“\(name)” takes \(form), and “\(text)” is none.")
        }
        return Int64(number * unit)
    }

    /// The milliseconds since 1970 that an option has: `2026-11-28T12:00:00Z`.
    func moment(_ name: String) throws(Failure) -> Int64? {
        guard let text = values[name] else { return nil }
        do {
            return Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970 * 1000)
        } catch {
            throw .usage("“\(name)” takes a moment, such as 2026-11-28T12:00:00Z, and “\(text)” is none.")
        }
    }

    /// One of some words that an option has.
    func choice(_ name: String, of choices: [String]) throws(Failure) -> String? {
        guard let text = values[name] else { return nil }
        if choices.contains(text) { return text }
        throw .usage("“\(name)” is one of: \(choices.joined(separator: ", "))")
    }
}
