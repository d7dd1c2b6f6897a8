import Foundation

/// Takes samples of subject and yardstick in turn, so that a slow moment of the machine hits them alike.
///
/// What is only worth seeing beside them is sampled in processes of its own: what it leaves in the allocator would be
/// charged to whoever comes next.
struct Measurement {
    let rounds: Int
    let warmUps: Int

    init(rounds: Int, warmUps: Int) {
        self.rounds = rounds
        self.warmUps = warmUps
    }

    /// As many samples as the scenario is worth: a new process has nothing that a round before it could warm up, and five
    /// of them tell what eleven would.
    private init(_ measurement: Measurement, for scenario: Scenario) {
        let isElsewhere = scenario.variants.allSatisfy(\.needsProcess)
        rounds = isElsewhere ? min(5, measurement.rounds) : measurement.rounds
        warmUps = isElsewhere ? 0 : measurement.warmUps
    }

    func run(_ scenario: Scenario) -> Result {
        Measurement(self, for: scenario).samples(of: scenario)
    }

    private func samples(of scenario: Scenario) -> Result {
        var samples = Array(repeating: [Double](), count: scenario.variants.count)
        for round in 0..<warmUps + rounds {
            for (index, variant) in scenario.variants.enumerated() where variant.needsProcess || index < 2 {
                Self.settle()
                let sample = variant.needsProcess ? elsewhere(scenario, index, rounds: 1)[0] : variant.sample()
                if round >= warmUps { samples[index].append(sample) }
            }
        }
        for index in scenario.variants.indices where samples[index].isEmpty {
            samples[index] = elsewhere(scenario, index, rounds: rounds)
        }
        return Result(scenario: scenario, samples: samples)
    }

    /// Samples of one variant alone, in this process.
    func run(_ variant: Variant) -> [Double] {
        if variant.needsProcess { return [variant.sample()] }
        return Array((0..<warmUps + rounds).map { _ in variant.sample() }.dropFirst(warmUps))
    }

    /// Lets the allocator merge what the last sample freed, so that the next one does not pay for it.
    ///
    /// A request too large for the bins of small blocks and too small to be mapped does that in glibc; without it the
    /// hundred thousands of objects of one variant made the next one's table look twice as slow.
    private static func settle() {
        let block = UnsafeMutableRawPointer.allocate(byteCount: 100_000, alignment: 16)
        consume(block)
        block.deallocate()
    }

    /// Runs this program once more, for samples of one variant; see ``Options/sample``.
    private func elsewhere(_ scenario: Scenario, _ variant: Int, rounds: Int) -> [Double] {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["--only", scenario.name, "--sample", "\(variant)", "--rounds", "\(rounds)"]
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            Self.giveUp(scenario, variant, "could not be started: \(error)")
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let samples = text.split(separator: "\n").compactMap { Double($0) }
        if process.terminationStatus != 0 || samples.isEmpty {
            Self.giveUp(scenario, variant, "ended with \(process.terminationStatus), after \(samples.count) samples")
        }
        return samples
    }

    /// Ends the run: a number that is missing would look like one that was measured.
    private static func giveUp(_ scenario: Scenario, _ variant: Int, _ what: String) -> Never {
        FileHandle.standardError.write(Data("\(scenario.name): the process of variant \(variant) \(what)\n".utf8))
        exit(1)
    }
}

/// The samples of a scenario.
struct Result {
    let scenario: Scenario
    let samples: [[Double]]

    func median(_ variant: Int) -> Double { Self.quantile(0.5, samples[variant]) }

    /// The middle half of the samples, as a share of the median.
    func spread(_ variant: Int) -> Double {
        let median = median(variant)
        if median == 0 { return 0 }
        return (Self.quantile(0.75, samples[variant]) - Self.quantile(0.25, samples[variant])) / median
    }

    /// The subject in terms of the yardstick within each round; none where the yardstick costs nothing.
    private var ratios: [Double] {
        zip(samples[0], samples[1]).compactMap { $1 == 0 ? nil : $0 / $1 }
    }

    /// The median of them over the rounds.
    var ratio: Double? { ratios.isEmpty ? nil : Self.quantile(0.5, ratios) }

    /// The middle half of them, as a share of the median.
    var ratioSpread: Double? {
        guard let ratio, ratio > 0 else { return nil }
        return (Self.quantile(0.75, ratios) - Self.quantile(0.25, ratios)) / ratio
    }

    static func quantile(_ share: Double, _ values: [Double]) -> Double {
        let sorted = values.sorted()
        let place = share * Double(sorted.count - 1)
        let (low, high) = (Int(place.rounded(.down)), Int(place.rounded(.up)))
        return sorted[low] + (sorted[high] - sorted[low]) * (place - Double(low))
    }
}
