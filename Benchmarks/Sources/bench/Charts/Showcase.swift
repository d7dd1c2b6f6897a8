/// The five operations that README shows, in absolute times: its table and its chart.
struct Showcase {
    private static let operations: [(scenario: String, title: String)] = [
        ("memory-int-get-at-random", "Read from memory, 200,000 random keys"),
        ("peers-get", "Read 300 bytes from disk"),
        ("peers-set", "Write 300 bytes (kept if the process crashes)"),
        ("large-replace", "Replace 100 KB"),
        ("large-get", "Read 100 KB"),
    ]

    /// The programs that README compares with, by the names of the figures.
    private static let names = [
        "larder": "Larder", "dictionary": "locked Dictionary", "NSCache": "NSCache",
        "SQLite": "prepared SQLite statement",
        "LMDB": "LMDB", "files": "a file per value",
    ]

    private let groups: [(title: String, bars: [(name: String, nanoseconds: Double)])]
    private let machine: Machine

    init(_ report: Report) {
        machine = report.machine
        groups = Self.operations.compactMap { operation in
            guard let row = report[operation.scenario] else { return nil }
            return (
                operation.title,
                row.figures.compactMap { figure in Self.names[figure.name].map { ($0, figure.median) } }
            )
        }
    }

    /// One row for each operation: Larder, then the others.
    var table: String {
        let lines = groups.map { group in
            let others = group.bars.dropFirst().map { "\($0.name) \(Self.time($0.nanoseconds))" }
            return "| \(group.title) | \(Self.time(group.bars[0].nanoseconds)) | \(others.joined(separator: " · ")) |"
        }
        return (["| Operation | Larder | Others |", "| --- | --- | --- |"] + lines).joined(separator: "\n")
    }

    /// Shorter bars are faster.
    ///
    /// A step of the axis is ten times the one before.
    var svg: String {
        let (left, right, rowHeight, headHeight, top) = (230.0, 650.0, 22.0, 30.0, 62.0)
        let bars = groups.flatMap(\.bars)
        let bottom = top + headHeight * Double(groups.count) + rowHeight * Double(bars.count)
        var drawing = Drawing(width: 760, height: bottom + 62)
        let title = "Time of one operation"
        let remark = "Shorter is faster. Each line to the right is ten times as long."
        drawing.text(title, 16, 26, "head")
        drawing.text(remark, 16, 46, "quiet")
        let scale = LogScale(bars.flatMap { [$0.nanoseconds * 0.6, $0.nanoseconds * 1.1] }, from: left, to: right)
        for tick in scale.ticks {
            drawing.line(scale.place(tick), top, scale.place(tick), bottom, "grid")
            drawing.text(Self.time(tick), scale.place(tick), bottom + 18, "quiet", anchor: .middle)
        }
        var y = top
        for group in groups {
            drawing.text(group.title, 16, y + 20, "head")
            y += headHeight
            for bar in group.bars {
                drawing.text(bar.name, left - 10, y + 15, anchor: .end)
                let end = scale.place(bar.nanoseconds)
                drawing.bar(from: left, to: end, y: y + 3, height: 15, bar.name == "Larder" ? "s0" : "s1")
                drawing.text(Self.time(bar.nanoseconds), end + 8, y + 15)
                y += rowHeight
            }
        }
        let system = machine.system.split(separator: " ").prefix(2).joined(separator: " ")
        drawing.text(
            "\(machine.date.prefix(10)), \(machine.processor), \(machine.cores) cores, \(system). Repeat: make bench",
            16, bottom + 44, "quiet")
        return drawing.svg(title: "\(title). \(remark)")
    }

    private static func time(_ nanoseconds: Double) -> String {
        switch nanoseconds {
        case 1e6...: "\(Table.short(nanoseconds / 1e6, digits: 2)) ms"
        case 1e4...: "\(Int((nanoseconds / 1e3).rounded())) µs"
        case 1e3...: "\(Table.short(nanoseconds / 1e3, digits: 2)) µs"
        default: "\(Int(nanoseconds.rounded())) ns"
        }
    }
}
