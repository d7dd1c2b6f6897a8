/// Ratios to a yardstick: to the left of the line at 1 is cheaper, to the right dearer, and twice is as far as half.
struct BarChart {
    struct Bar {
        let label: String
        let ratio: Double
        let target: Double?
        /// Which of the colours; the subject has the first.
        var colour = 0
    }

    let title: String
    let remark: String
    let bars: [Bar]

    var svg: String {
        let (left, right, rowHeight, top) = (270.0, 690.0, 26.0, 70.0)
        let bottom = top + rowHeight * Double(bars.count)
        var drawing = Drawing(width: 760, height: bottom + 44)
        let values = bars.flatMap { [$0.ratio, $0.target].compactMap(\.self) }
        let scale = LogScale(values.flatMap { [$0 * 0.8, $0 * 1.2] }, including: 1, from: left, to: right)
        drawing.text(title, 16, 28, "head")
        drawing.text(remark, 16, 50, "quiet")
        for tick in scale.ticks {
            let x = scale.place(tick)
            drawing.line(x, top, x, bottom, "grid")
            drawing.text(Self.label(tick), x, bottom + 20, "quiet", anchor: .middle)
        }
        let one = scale.place(1)
        for (index, bar) in bars.enumerated() {
            let y = top + rowHeight * Double(index)
            drawing.text(bar.label, left - 12, y + 18, anchor: .end)
            drawing.bar(from: one, to: scale.place(bar.ratio), y: y + 5, height: 16, "s\(bar.colour)")
            if let target = bar.target {
                drawing.line(scale.place(target), y + 2, scale.place(target), y + 24, "target")
            }
            drawing.text(Table.number(bar.ratio), right + 12, y + 18)
        }
        drawing.line(one, top - 4, one, bottom, "one")
        return drawing.svg(title: "\(title). \(remark)")
    }

    private static func label(_ value: Double) -> String {
        value >= 1 ? "\(Int(value))" : Table.short(value, digits: 1)
    }
}
