import Foundation

/// The figures of one run, as they are kept: committed, compared with later ones, and drawn.
struct Report: Codable {
    struct Figure: Codable {
        let name: String
        let median: Double
        /// The middle half of the samples, as a share of the median.
        let spread: Double
    }

    struct Row: Codable {
        let scenario: String
        let unit: String
        /// The subject in terms of the yardstick, or nil where that costs nothing.
        let ratio: Double?
        /// The middle half of the ratios within one round, as a share of their median.
        let ratioSpread: Double?
        let target: Double?
        /// The place on a curve, if it is a point of one.
        let point: Point?
        /// The subject, the yardstick, and the others.
        let figures: [Figure]
    }

    let machine: Machine
    /// How many samples of each were taken at most.
    let rounds: Int
    private(set) var rows: [Row] = []

    init(machine: Machine, rounds: Int) {
        self.machine = machine
        self.rounds = rounds
    }

    mutating func add(_ result: Result) {
        let scenario = result.scenario
        rows.append(
            Row(
                scenario: scenario.name, unit: scenario.unit, ratio: result.ratio.map { rounded($0) },
                ratioSpread: result.ratioSpread.map { rounded($0, digits: 2) },
                target: scenario.target.map { rounded($0) }, point: scenario.point,
                figures: scenario.variants.indices.map { index in
                    Figure(
                        name: scenario.variants[index].name, median: rounded(result.median(index)),
                        spread: rounded(result.spread(index), digits: 2))
                }))
    }

    init(contentsOf url: URL) throws {
        self = try JSONDecoder().decode(Report.self, from: try Data(contentsOf: url))
    }

    func write(to url: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let folder = url.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try (encoder.encode(self) + Data("\n".utf8)).write(to: url)
    }

    subscript(scenario: String) -> Row? { rows.first { $0.scenario == scenario } }
}

extension Report.Row {
    var isGood: Bool? {
        guard let ratio, let target else { return nil }
        return ratio <= target
    }
}
