internal import Foundation

/// Pictures of numbers as SVG, whose colours are those of the page.
enum Drawing {
    /// A text in which nothing is a mark of HTML.
    static func escaped(_ text: String) -> String {
        Text.escaped(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    private static func svg(_ width: Int, _ height: Int, _ title: String, _ marks: [String]) -> String {
        "<svg viewBox=\"0 0 \(width) \(height)\" role=\"img\" aria-label=\"\(escaped(title))\">"
            + marks.joined() + "</svg>\n"
    }

    private static func number(_ value: Double) -> String {
        let text = String(format: "%.1f", value)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static func text(_ x: Double, _ y: Double, _ text: String, _ anchor: String = "start") -> String {
        "<text x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor)\">\(escaped(text))</text>"
    }

    private static func bar(
        _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String, _ tip: String
    ) -> String {
        "<rect class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\""
            + " height=\"\(number(height))\"><title>\(escaped(tip))</title></rect>"
    }

    /// Parts of a whole, one next to the other.
    static func parts(_ parts: [(name: String, value: Int64)], _ title: String) -> String {
        let whole = parts.reduce(0) { $0 + $1.value }
        var (x, marks) = (0.0, [String]())
        for (index, part) in parts.enumerated() where part.value > 0 {
            let width = 700 * Double(part.value) / Double(whole)
            marks.append(bar(x, 0, width, 22, "c\(index % 6)", "\(part.name): \(Text.bytes(part.value))"))
            x += width
        }
        // Thin parts have no room for a name.
        let names = parts.enumerated().filter { $0.element.value > 0 }.map { index, part in
            "<i class=\"c\(index % 6)\"></i> \(part.name) \(Text.bytes(part.value))"
        }
        return svg(700, 24, title, marks) + "<p>\(names.joined(separator: " &nbsp; "))</p>\n"
    }

    /// Bars that stand side by side, each with a number above and a name below it.
    static func histogram(_ bars: [(name: String, value: Int)], _ title: String) -> String {
        let (highest, step) = (Double(max(1, bars.map(\.value).max() ?? 0)), 340 / Double(max(1, bars.count)))
        let marks = bars.enumerated().map { index, item -> String in
            let (x, height) = (Double(index) * step, 70 * Double(item.value) / highest)
            let tip = "\(item.name): \(Text.number(item.value))"
            let above = item.value > 0 ? text(x + step / 2, 80 - height, short(item.value), "middle") : ""
            return bar(x + 2, 84 - height, step - 4, height, "c0", tip) + above
                + text(x + step / 2, 96, item.name, "middle")
        }
        return svg(340, 100, title, marks)
    }

    private static func short(_ count: Int) -> String {
        count < 1000 ? "\(count)" : count < 1_000_000 ? "\(count / 1000)k" : "\(count / 1_000_000)M"
    }

    /// Two values of each day, one on the other: those that were found below, those that were not above.
    static func days(_ days: [(name: String, hits: Int64, misses: Int64)], _ title: String) -> String {
        let highest = Double(max(1, days.map { $0.hits + $0.misses }.max() ?? 0))
        let step = 700 / Double(max(1, days.count))
        var marks = days.enumerated().map { index, day -> String in
            if day.hits + day.misses == 0 { return "" }
            let (hits, misses) = (80 * Double(day.hits) / highest, 80 * Double(day.misses) / highest)
            let tip = "\(day.name): \(Text.number(day.hits)) hits, \(Text.number(day.misses)) misses"
            let x = Double(index) * step
            return bar(x, 90 - hits, step - 1, hits, "c0", tip)
                + bar(x, 90 - hits - misses, step - 1, misses, "c1", tip)
        }
        marks.append(text(0, 104, days.first?.name ?? "") + text(700, 104, days.last?.name ?? "", "end"))
        return svg(700, 108, title, marks)
    }

    /// A line through points, with a name at either end of each axis.
    static func curve(
        _ points: [(x: Double, y: Double)], _ title: String, x: (String, String), y: (String, String)
    ) -> String {
        let (width, height) = (points.map(\.x).max() ?? 0, points.map(\.y).max() ?? 0)
        let path = points.map { point in
            let (x, y) = (width == 0 ? 0 : point.x / width, height == 0 ? 0 : point.y / height)
            return number(60 + 630 * x) + "," + number(100 - 90 * y)
        }
        return svg(
            700, 118, title,
            [
                "<path class=\"axis\" d=\"M60,5V100H695\"/>",
                "<polyline class=\"line\" points=\"\(path.joined(separator: " "))\"/>", text(55, 100, y.0, "end"),
                text(55, 14, y.1, "end"), text(60, 114, x.0), text(695, 114, x.1, "end"),
            ])
    }
}
