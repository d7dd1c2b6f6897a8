import Foundation

/// Takes samples of all variants of a scenario in turn, so that a slow moment of the machine hits them alike.
struct Measurement {
    let rounds: Int
    let warmUps: Int

    func run(_ scenario: Scenario) -> Result {
        var samples = Array(repeating: [Double](), count: scenario.variants.count)
        for round in 0..<warmUps + rounds {
            for (index, variant) in scenario.variants.enumerated() {
                Self.settle()
                let sample = variant.needsProcess ? Self.sampleElsewhere(scenario, index) : variant.sample()
                if round >= warmUps { samples[index].append(sample) }
            }
        }
        return Result(scenario: scenario, samples: samples)
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

    /// Runs this program once more, for one sample; see ``Options/sample``.
    private static func sampleElsewhere(_ scenario: Scenario, _ variant: Int) -> Double {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["--only", scenario.name, "--sample", "\(variant)"]
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            return .nan
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? .nan
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

    /// The subject in terms of the yardstick: the median over the rounds of the ratio within one round.
    var ratio: Double {
        Self.quantile(0.5, zip(samples[0], samples[1]).map { $0 / $1 })
    }

    var isGood: Bool? { scenario.target.map { ratio <= $0 } }

    static func quantile(_ share: Double, _ values: [Double]) -> Double {
        let sorted = values.sorted()
        let place = share * Double(sorted.count - 1)
        let (low, high) = (Int(place.rounded(.down)), Int(place.rounded(.up)))
        return sorted[low] + (sorted[high] - sorted[low]) * (place - Double(low))
    }
}
