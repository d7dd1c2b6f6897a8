import Foundation

/// Places on an axis where the same distance is the same ratio.
struct LogScale {
    private let low: Double
    private let high: Double
    private let start: Double
    private let end: Double

    /// - Parameter including: A value that is on the axis whatever is shown.
    init(_ values: [Double], including: Double? = nil, from start: Double, to end: Double) {
        let all = (values + [including].compactMap(\.self)).filter { $0 > 0 }
        low = log10(all.min() ?? 1)
        high = max(log10(all.max() ?? 1), low + 0.3)
        self.start = start
        self.end = end
    }

    func place(_ value: Double) -> Double {
        start + (end - start) * (log10(max(value, 1e-12)) - low) / (high - low)
    }

    /// Round values on it, few enough to be read.
    var ticks: [Double] {
        let steps: [Double] = high - low > 3 ? [1] : high - low > 1.3 ? [1, 3] : [1, 2, 5]
        return (Int(low.rounded(.down))...Int(high.rounded(.up)))
            .flatMap { power in steps.map { $0 * pow(10, Double(power)) } }
            .filter { log10($0) >= low - 0.001 && log10($0) <= high + 0.001 }
    }
}
