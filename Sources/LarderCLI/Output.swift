internal import Foundation
internal import LarderLocks
internal import LarderStore

/// Where the command prints, and how.
enum Output {
    /// A Boolean value that indicates whether the output is a terminal.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    private static let hasStyle =
        isTerminal && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty

    /// Prints a text as it is.
    ///
    /// A reader that has gone ends the command by a signal, as it does any other one.
    static func put(_ text: String) throws(Failure) { try put(Data(text.utf8)) }

    static func put(_ bytes: Data) throws(Failure) {
        let full = pending.withLock { pending -> Data? in
            pending += bytes
            if pending.count < 1 << 16 { return nil }
            defer { pending = Data() }
            return pending
        }
        if let full { try write(full) }
    }

    static func line(_ text: String = "") throws(Failure) { try put(text + "\n") }

    /// Writes what is left, at the end.
    static func finish() throws(Failure) {
        let rest = pending.withLock { pending in
            defer { pending = Data() }
            return pending
        }
        try write(rest)
    }

    /// What was printed and is not written yet.
    private static let pending = Mutex(Data())

    private static func write(_ bytes: Data) throws(Failure) {
        do {
            try FileHandle.standardOutput.write(contentsOf: bytes)
        } catch {
            throw Failure(74, "The output cannot be written: \(String(cString: strerror(errno))).")
        }
    }

    static func complain(_ text: String) { note("larder: \(Text.visible(text))\n") }

    /// Writes to the standard error, if that is possible.
    static func note(_ text: String) {
        do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
    }

    static func bold(_ text: String) -> String { hasStyle ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    /// Prints an object as a line of JSON.
    static func json(_ object: [String: Any]) throws {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        let data = try JSONSerialization.data(withJSONObject: object, options: options)
        try line(Text.visible(String(decoding: data, as: UTF8.self)))
    }
}

/// Rows whose columns stand below each other.
struct Table {
    /// The heads of the columns; those with a space in front have their text at the right.
    private let heads: [String]
    private var rows: [[String]] = []

    init(_ heads: String...) { self.heads = heads }

    mutating func add(_ cells: String...) { rows.append(cells) }

    /// Prints the rows, or what is said if there are none.
    func print(orSay nothing: String? = nil) throws(Failure) {
        if let nothing, rows.isEmpty { return try Output.line(nothing) }
        for line in lines { try Output.line(line) }
    }

    var lines: [String] {
        let titles = heads.map { $0.trimmingCharacters(in: .whitespaces) }
        let widths = titles.indices.map { column in
            ([titles[column]] + rows.map { $0[column] }).map(\.count).max() ?? 0
        }
        return ([titles] + rows).enumerated().map { index, row in
            var text = ""
            for (column, cell) in row.enumerated() {
                let space = String(repeating: " ", count: widths[column] - cell.count)
                let isLast = column == row.count - 1
                text += heads[column].hasPrefix(" ") ? space + cell : isLast ? cell : cell + space
                if !isLast { text += "  " }
            }
            return index == 0 ? Output.bold(text) : text
        }
    }
}

/// Numbers and texts for people.
enum Text {
    /// A number of bytes: `412.3 MB`.
    static func bytes(_ count: Int64) -> String {
        var (value, units) = (Double(count), ["B", "KB", "MB", "GB", "TB"][...])
        while value >= 999.95, units.count > 1 {
            value /= 1000
            units.removeFirst()
        }
        let unit = units.first ?? ""
        return unit == "B" ? "\(count) B" : String(format: "%.1f %@", value, unit)
    }

    /// A number with a comma before each three digits.
    static func number(_ count: some BinaryInteger) -> String {
        var (digits, text) = (Array("\(count)".reversed()), "")
        if digits.last == "-" { digits.removeLast() }
        for (index, digit) in digits.enumerated() {
            text = "\(digit)" + (index > 0 && index % 3 == 0 ? "," : "") + text
        }
        return count < 0 ? "-" + text : text
    }

    /// A time in its largest unit: `3 days`.
    static func duration(_ milliseconds: Int64) -> String {
        for (unit, length) in [("day", 86_400_000 as Int64), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)]
        where milliseconds >= length {
            let count = milliseconds / length
            return "\(number(count)) \(unit)\(count == 1 ? "" : "s")"
        }
        return "now"
    }

    /// How long ago a moment was, or when it will be: `3 days ago`.
    static func ago(_ moment: Int64, _ now: Int64) -> String {
        let milliseconds = now.subtractingSaturated(moment)
        if milliseconds < 0 { return "in " + duration(moment.subtractingSaturated(now)) }
        let text = duration(milliseconds)
        return text == "now" ? text : text + " ago"
    }

    /// A moment as JSON has it; a number if it is in no year of four digits.
    static func moment(_ milliseconds: Int64) -> String {
        guard (-60_000_000_000_000...253_402_300_799_000).contains(milliseconds) else { return "\(milliseconds)" }
        let part = ((milliseconds % 1000) + 1000) % 1000
        let date = Date(timeIntervalSince1970: Double((milliseconds - part) / 1000))
        return date.formatted(.iso8601).dropLast() + String(format: ".%03dZ", Int(part))
    }

    /// A text for people in at most forty characters of a code.
    static func short(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.unicodeScalars.count > 40 ? String(escaped.unicodeScalars.prefix(39)) + "…" : escaped
    }

    /// Whether a terminal could act on a character, or show nothing.
    static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        [.control, .format, .surrogate, .lineSeparator, .paragraphSeparator].contains(
            scalar.properties.generalCategory)
    }

    /// A text in one line, without characters that a terminal acts on.
    static func escaped(_ text: String) -> String {
        visible(text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\t", with: "\\t"))
    }

    /// A text with its lines, in which characters that a terminal acts on stand as JSON has them.
    static func visible(_ text: String) -> String {
        if !text.unicodeScalars.contains(where: { isHidden($0) && $0 != "\n" && $0 != "\t" }) { return text }
        var visible = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if isHidden(scalar) && scalar != "\n" && scalar != "\t" {
                for unit in String(scalar).utf16 { visible += String(format: "\\u%04x", unit).unicodeScalars }
            } else {
                visible.append(scalar)
            }
        }
        return String(visible)
    }

    /// A text as a shell takes it as one word.
    static func shellWord(_ text: String) -> String {
        let isPlain = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-".contains($0)) }
        return isPlain && !text.isEmpty ? text : "'" + visible(text).replacing("'", with: "'\\''") + "'"
    }

    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }

    /// The bytes that a text of digits means; nil if it is none.
    static func bytes(ofHexadecimal text: String) -> Data? {
        let digits = Array(text)
        if digits.count % 2 != 0 { return nil }
        var bytes = Data()
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(digits[index...index + 1]), radix: 16) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}
