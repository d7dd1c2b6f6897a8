import Foundation

/// Every scenario, in the order of the table; a new group of them is added here, and nowhere else.
var scenarios: [Scenario] {
    [
        memoryIntegerScenarios,
        memoryStringScenarios,
        memoryHasherScenarios,
        memoryEvictionScenarios,
        memoryThreadScenarios,
        memorySizeScenarios,
        memoryPauseScenarios,
        codingScenarios,
        hitScenarios,
        diskReadScenarios,
        diskWriteScenarios,
        generationScenarios,
        largeValueScenarios,
        iterationScenarios,
        sharingScenarios,
    ].flatMap(\.self)
}

@main
enum Bench {
    static func main() throws {
        if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--committer" {
            return Committer.serve(CommandLine.arguments[2])
        }
        let options = try Options(CommandLine.arguments.dropFirst())
        let chosen = scenarios.filter { options.isChosen($0.name) }
        if options.lists {
            for scenario in chosen { print(scenario.name) }
            return
        }
        if let variant = options.sample {
            let measurement = Measurement(rounds: options.rounds, warmUps: options.warmUps)
            // The first is the one that was asked for, others may begin with its name.
            for sample in measurement.run(chosen[0].variants[variant]) { print(sample) }
            return
        }
        var results: [Result] = []
        for scenario in chosen {
            FileHandle.standardError.write(Data("\(scenario.name) ...\n".utf8))
            let measurement = Measurement(rounds: options.rounds, warmUps: options.warmUps)
            results.append(measurement.run(scenario.limited(to: options.variants)))
        }
        print(Table(results).text)
        if let file = options.json { try Report(results).write(to: URL(fileURLWithPath: file)) }
    }
}
