/// An SVG that brings its own ground and colours, for light and dark, so that it is readable on whatever page it stands.
struct Drawing {
    enum Anchor: String { case start, middle, end }

    let width: Double
    let height: Double
    private var elements: [String] = []

    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    /// - Parameter style: A class of the style sheet below, as with all others.
    mutating func text(_ text: String, _ x: Double, _ y: Double, _ style: String = "", anchor: Anchor = .start) {
        elements.append(
            "<text class=\"\(style)\" x=\"\(Self.place(x))\" y=\"\(Self.place(y))\" text-anchor=\"\(anchor)\">"
                + "\(Self.escaped(text))</text>")
    }

    mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String) {
        let ends = [("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)].map { "\($0)=\"\(Self.place($1))\"" }
        elements.append("<line class=\"\(style)\" \(ends.joined(separator: " "))/>")
    }

    mutating func bar(from x1: Double, to x2: Double, y: Double, height: Double, _ style: String) {
        elements.append(
            "<rect class=\"\(style)\" x=\"\(Self.place(min(x1, x2)))\" y=\"\(Self.place(y))\" rx=\"2\" "
                + "width=\"\(Self.place(max(1, abs(x2 - x1))))\" height=\"\(Self.place(height))\"/>")
    }

    mutating func curve(_ points: [(x: Double, y: Double)], _ style: String) {
        let places = points.map { "\(Self.place($0.x)),\(Self.place($0.y))" }
        elements.append("<polyline class=\"curve \(style)\" points=\"\(places.joined(separator: " "))\"/>")
        for point in points {
            elements.append(
                "<circle class=\"dot \(style)\" cx=\"\(Self.place(point.x))\" cy=\"\(Self.place(point.y))\" r=\"3.5\"/>"
            )
        }
    }

    /// - Parameter title: What is read out to those who do not see it.
    func svg(title: String) -> String {
        let size = "width=\"\(Self.place(width))\" height=\"\(Self.place(height))\""
        let head =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" \(size) viewBox=\"0 0 \(Self.place(width)) "
            + "\(Self.place(height))\" role=\"img\">\n<title>\(Self.escaped(title))</title>\n<style>\n\(Self.style)</style>\n"
        let ground = "<rect class=\"ground\" \(size) rx=\"8\"/>\n"
        return head + ground + elements.joined(separator: "\n") + "\n</svg>\n"
    }

    /// Colours that people who do not see red or green tell apart, in the order in which they are given away.
    private static let style = """
        text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
        .head { font-size: 16px; font-weight: 600 }
        .quiet { fill: #59636e; font-size: 13px }
        .ground { fill: #ffffff }
        .grid { stroke: #d8dee4; stroke-width: 1 }
        .one { stroke: #1f2328; stroke-width: 1.5 }
        .target { stroke: #bf3989; stroke-width: 3 }
        .curve { fill: none; stroke-width: 2.5; stroke-linejoin: round }
        .s0 { fill: #0969da; stroke: #0969da }
        .s1 { fill: #8c6a00; stroke: #8c6a00 }
        .s2 { fill: #1a7f64; stroke: #1a7f64 }
        .s3 { fill: #8250df; stroke: #8250df }
        .s4 { fill: #bc4c00; stroke: #bc4c00 }
        text.s0, text.s1, text.s2, text.s3, text.s4, rect { stroke: none }
        polyline.curve { fill: none }
        @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 }
        .quiet { fill: #9da7b1 }
        .ground { fill: #161b22 }
        .grid { stroke: #363d46 }
        .one { stroke: #e6edf3 }
        .target { stroke: #ff80c8 }
        .s0 { fill: #58a6ff; stroke: #58a6ff }
        .s1 { fill: #e3b341; stroke: #e3b341 }
        .s2 { fill: #3fc9a3; stroke: #3fc9a3 }
        .s3 { fill: #bc8cff; stroke: #bc8cff }
        .s4 { fill: #ff9b5e; stroke: #ff9b5e }
        }

        """

    private static func place(_ value: Double) -> String {
        let tenths = (value * 10).rounded() / 10
        return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
