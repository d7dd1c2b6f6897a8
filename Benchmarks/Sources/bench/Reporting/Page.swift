import Foundation

/// The tables of a page of the documentation, written where it has marks for them.
///
/// A table stands between the comments `figures: PREFIX...` and `end of figures`.
struct Page {
    private static let mark = "<!-- figures:"
    private static let end = "<!-- end of figures -->"

    private let report: Report

    init(_ report: Report) {
        self.report = report
    }

    func renew(_ url: URL) throws {
        let text = try String(contentsOf: url, encoding: .utf8)
        var lines: [Substring] = []
        var isInside = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line == Self.end { isInside = false }
            if !isInside { lines.append(line) }
            if line.hasPrefix(Self.mark) {
                isInside = true
                let prefixes = line.dropFirst(Self.mark.count).split(separator: " ").filter { $0 != "-->" }
                lines += ["", Substring(content(prefixes.map(String.init))), ""]
            }
        }
        try Data(lines.joined(separator: "\n").utf8).write(to: url)
    }

    private func content(_ prefixes: [String]) -> String {
        if prefixes == ["showcase"] { return Showcase(report).table }
        if prefixes == ["machine"] { return "\(report.machine.text), \(report.rounds) rounds." }
        let rows = report.rows.filter { row in
            row.point == nil && prefixes.contains { row.scenario.hasPrefix($0) }
        }
        if rows.isEmpty { return "These were not measured." }
        let others = rows.contains { $0.figures.count > 2 }
        let head = ["Scenario", "Ratio", "Goal", "Larder", "Yardstick"] + (others ? ["Others"] : [])
        let cells = rows.map { row in
            let missed = row.isGood == false
            let ratio = row.ratio.map(Table.number) ?? ""
            return [
                row.scenario, missed ? "**\(ratio)**" : ratio, row.target.map(Table.number) ?? "",
                Self.cost(row.figures[0], row, named: row.figures[0].name != "larder"),
                Self.cost(row.figures[1], row, named: true),
            ]
                + (others
                    ? [row.figures.dropFirst(2).map { Self.cost($0, row, named: true) }.joined(separator: ", ")] : [])
        }
        return ([head, head.map { _ in "---" }] + cells).map { "| \($0.joined(separator: " | ")) |" }
            .joined(separator: "\n")
    }

    private static func cost(_ figure: Report.Figure, _ row: Report.Row, named: Bool) -> String {
        let (value, unit) =
            switch (row.unit, figure.median) {
            case ("ns", 1e6...): (figure.median / 1e6, "ms")
            case ("ns", 1e4...): (figure.median / 1e3, "µs")
            case ("us", 1e3...): (figure.median / 1e3, "ms")
            case ("us", _): (figure.median, "µs")
            default: (figure.median, row.unit)
            }
        let digits = value >= 100 ? "\(Int(value.rounded()))" : Table.short(value, digits: 2)
        return (named ? "\(figure.name) " : "") + "\(digits) \(unit)"
    }
}
