import Foundation

/// The results as aligned text.
struct Table {
    let text: String

    init(_ results: [Result]) {
        var rows = [["scenario", "ratio", "target", "", "unit", "subject", "yardstick", "others"]]
        for result in results {
            let variants = result.scenario.variants.indices.map { index in
                "\(result.scenario.variants[index].name) \(Self.number(result.median(index)))"
                    + " ±\(Int((result.spread(index) * 50).rounded()))%"
            }
            rows.append(
                [
                    result.scenario.name, Self.number(result.ratio), result.scenario.target.map(Self.number) ?? "-",
                    result.isGood.map { $0 ? "ok" : "MISSED" } ?? "", result.scenario.unit, variants[0], variants[1],
                    variants.dropFirst(2).joined(separator: ", "),
                ])
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        text = rows.map { row in
            zip(row, widths).map { $0.padding(toLength: max($1, $0.count), withPad: " ", startingAt: 0) }
                .joined(separator: "  ")
        }.joined(separator: "\n")
    }

    private static func number(_ value: Double) -> String {
        String(format: abs(value) < 10 ? "%.2f" : "%.1f", value)
    }
}

/// The results as JSON.
struct Report: Encodable {
    struct Row: Encodable {
        let scenario: String
        let unit: String
        let ratio: Double
        let target: Double?
        let medians: [String: Double]
        let samples: [String: [Double]]
    }

    let rows: [Row]

    init(_ results: [Result]) {
        rows = results.map { result in
            let names = result.scenario.variants.map(\.name)
            return Row(
                scenario: result.scenario.name, unit: result.scenario.unit, ratio: result.ratio,
                target: result.scenario.target,
                medians: Dictionary(uniqueKeysWithValues: zip(names, names.indices.map(result.median))),
                samples: Dictionary(uniqueKeysWithValues: zip(names, result.samples)))
        }
    }

    func write(to url: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try encoder.encode(self).write(to: url)
    }
}
