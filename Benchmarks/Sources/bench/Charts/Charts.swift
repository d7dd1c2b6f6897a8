import Foundation

/// The charts of a report, one SVG each; a new one is added here.
struct Charts {
    private let report: Report

    init(_ report: Report) {
        self.report = report
    }

    func write(to folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, svg) in bars.mapValues(\.svg).merging(curves.mapValues(\.svg), uniquingKeysWith: { $1 }) {
            try Data(svg.utf8).write(to: folder.appendingPathComponent("performance-\(name).svg"))
        }
    }

    // MARK: - Bars

    private static let remark =
        "Time as a ratio to the yardstick's, in the same run. Left of 1 is faster."

    private var bars: [String: BarChart] {
        var charts: [String: BarChart] = [:]
        for (name, title, prefixes) in [
            ("memory", "In memory, beside a Dictionary behind a Mutex", ["memory-", "hit-"]),
            ("coding", "The codec, beside JSONEncoder and JSONDecoder", ["coding-"]),
            ("disk", "On disk, beside prepared SQLite statements", ["disk-", "set-", "iteration", "two-", "expiry"]),
            ("large", "Values of 100 KB, beside plain files", ["large-"]),
            ("thousand", "A thousand entries on disk", ["thousand-"]),
        ] {
            let rows = report.rows.filter { row in row.unit == "ns" && prefixes.contains { row.scenario.hasPrefix($0) }
            }
            let bars = rows.compactMap { row in
                row.ratio.map { BarChart.Bar(label: Self.label(row.scenario), ratio: $0, target: row.target) }
            }
            if !bars.isEmpty {
                charts[name] = BarChart(
                    title: title, remark: Self.remark + (bars.contains { $0.target != nil } ? " Pink: the goal." : ""),
                    bars: bars)
            }
        }
        charts["peers"] = peers
        return charts
    }

    /// Everybody beside SQLite, each in a process of its own.
    private var peers: BarChart? {
        let bars = report.rows.filter { $0.scenario.hasPrefix("peers-") }.flatMap { row in
            row.figures.enumerated().compactMap { index, figure -> BarChart.Bar? in
                guard index != 1, row.figures[1].median > 0 else { return nil }
                let label = "\(Self.label(String(row.scenario.dropFirst(6)))): \(figure.name)"
                return BarChart.Bar(
                    label: label, ratio: figure.median / row.figures[1].median, target: nil,
                    colour: Self.colour(figure.name))
            }
        }
        if bars.isEmpty { return nil }
        return BarChart(
            title: "The same work elsewhere, beside prepared SQLite statements",
            remark: "Time as a ratio to SQLite's, each in a process of its own. Left of 1 is faster.", bars: bars)
    }

    /// Everybody keeps a colour through all groups.
    private static func colour(_ name: String) -> Int {
        name.hasPrefix("larder") ? 0 : ["", "", "LMDB", "diskcache", "Redis"].firstIndex(of: name) ?? 1
    }

    private static func label(_ scenario: String) -> String { scenario.replacing("-", with: " ") }

    // MARK: - Curves

    private var curves: [String: CurveChart] {
        var charts: [String: CurveChart] = [:]
        for curve in Curve.all {
            let rows = report.rows.filter { $0.point?.curve == curve.name }
            let names = rows.first?.figures.map(\.name) ?? []
            let lines = names.map { name in
                CurveChart.Line(
                    label: name,
                    points: rows.compactMap { row in
                        guard let point = row.point, let figure = row.figures.first(where: { $0.name == name }) else {
                            return nil
                        }
                        return (point.place, figure.median)
                    })
            }
            if lines.isEmpty { continue }
            charts[curve.name] = CurveChart(
                title: curve.title, remark: curve.remark, unit: rows[0].unit, axis: curve.axis, lines: lines)
        }
        return charts
    }
}
