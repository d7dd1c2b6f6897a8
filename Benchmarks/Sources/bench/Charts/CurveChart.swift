/// Cost against how many or how large, both in powers.
struct CurveChart {
    struct Line {
        let label: String
        let points: [(place: Double, cost: Double)]
    }

    /// How the axis of places counts.
    enum Axis { case number, bytes }

    let title: String
    let remark: String
    let unit: String
    let axis: Axis
    let lines: [Line]

    var svg: String {
        let (left, top, bottom, width) = (84.0, 74.0, 330.0, 760.0)
        // The names stand behind the lines' ends.
        let right = width - 30 - 8 * Double(lines.map(\.label.count).max() ?? 0)
        var drawing = Drawing(width: width, height: 376)
        let points = lines.flatMap(\.points)
        let across = LogScale(points.map(\.place), from: left, to: right)
        let up = LogScale(points.flatMap { [$0.cost * 0.8, $0.cost * 1.25] }, from: bottom, to: top)
        drawing.text(title, 16, 28, "head")
        drawing.text(remark, 16, 50, "quiet")
        for tick in up.ticks {
            drawing.line(left, up.place(tick), right, up.place(tick), "grid")
            drawing.text(Self.cost(tick, unit), left - 10, up.place(tick) + 5, "quiet", anchor: .end)
        }
        for place in Set(points.map(\.place)).sorted() {
            drawing.line(across.place(place), top, across.place(place), bottom, "grid")
            drawing.text(label(place), across.place(place), bottom + 24, "quiet", anchor: .middle)
        }
        for (index, line) in lines.enumerated() {
            drawing.curve(line.points.map { (across.place($0.place), up.place($0.cost)) }, "s\(index)")
        }
        for (index, y) in ends(up) { drawing.text(lines[index].label, right + 14, y + 5, "s\(index)") }
        return drawing.svg(title: "\(title). \(remark)")
    }

    /// Where the lines' names stand: at their ends, but one below the other.
    private func ends(_ scale: LogScale) -> [(index: Int, y: Double)] {
        var last = -Double.infinity
        return lines.indices.map { index in (index, scale.place(lines[index].points.last?.cost ?? 1)) }
            .sorted { $0.1 < $1.1 }
            .map { index, y in
                last = max(y, last + 18)
                return (index, last)
            }
    }

    private func label(_ place: Double) -> String {
        switch axis {
        case .number:
            place < 1000 ? "\(Int(place))" : "\(Int(place) / 1000),000".replacing("1000,000", with: "1,000,000")
        case .bytes: place < 1e3 ? "\(Int(place)) B" : place < 1e6 ? "\(Int(place / 1e3)) KB" : "\(Int(place / 1e6)) MB"
        }
    }

    private static func cost(_ value: Double, _ unit: String) -> String {
        guard unit == "ns" else { return "\(Table.number(value)) \(unit)" }
        if value < 1e3 { return "\(Table.short(value, digits: 1)) ns" }
        if value < 1e6 { return "\(Table.short(value / 1e3, digits: 1)) µs" }
        return "\(Table.short(value / 1e6, digits: 1)) ms"
    }
}
