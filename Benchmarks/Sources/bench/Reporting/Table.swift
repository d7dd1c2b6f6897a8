import Foundation

/// Rows of text, aligned; the first one is the head.
struct Table {
    let text: String

    init(_ rows: [[String]]) {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        text = rows.map { row in
            zip(row, widths).map { $0.padding(toLength: max($1, $0.count), withPad: " ", startingAt: 0) }
                .joined(separator: "  ").trimmingCharacters(in: .whitespaces)
        }.joined(separator: "\n")
    }

    /// The figures of a run.
    init(_ report: Report) {
        var rows = [["scenario", "ratio", "target", "", "unit", "subject", "yardstick", "others"]]
        for row in report.rows {
            let figures = row.figures.map { figure in
                "\(figure.name) \(Self.number(figure.median)) ±\(Int((figure.spread * 50).rounded()))%"
            }
            rows.append(
                [
                    row.scenario, row.ratio.map(Self.number) ?? "-", row.target.map(Self.number) ?? "-",
                    row.isGood.map { $0 ? "ok" : "MISSED" } ?? "", row.unit, figures[0], figures[1],
                    figures.dropFirst(2).joined(separator: ", "),
                ])
        }
        self.init(rows)
    }

    /// So many digits that count, and no zeros behind them.
    static func short(_ value: Double, digits: Int) -> String { String(format: "%g", rounded(value, digits: digits)) }

    static func number(_ value: Double) -> String {
        String(format: abs(value) < 10 ? "%.2f" : "%.1f", value)
    }
}
