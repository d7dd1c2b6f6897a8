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
        memoryBoundScenarios,
        memoryPauseScenarios,
        codingScenarios,
        hitScenarios,
        diskReadScenarios,
        diskWriteScenarios,
        ownLimitScenarios,
        generationScenarios,
        lateReadScenarios,
        busyScenarios,
        expiryScenarios,
        groupScenarios,
        migrationScenarios,
        largeValueScenarios,
        iterationScenarios,
        sharingScenarios,
        processScenarios,
        sharedTierScenarios,
        httpScenarios,
        thousandScenarios,
        allocationScenarios,
        amplificationScenarios,
        entryCurveScenarios,
        sizeCurveScenarios,
        threadCurveScenarios,
        peerScenarios,
    ].flatMap(\.self)
}

@main
enum Bench {
    static func main() throws {
        if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "--committer" {
            return Committer.serve(CommandLine.arguments[2])
        }
        if CommandLine.arguments.count == 4, CommandLine.arguments[1] == "--writer" {
            return Writer.serve(CommandLine.arguments[2], CommandLine.arguments[3])
        }
        let options: Options
        do {
            options = try Options(CommandLine.arguments.dropFirst())
        } catch let failure as Options.Failure {
            say("\(failure.message)\n\n\(Options.usage)")
            exit(2)
        }
        if let charts = options.charts { return try draw(charts, options) }
        if let old = options.old, let new = options.new {
            print(Comparison(try Report(contentsOf: url(old)), try Report(contentsOf: url(new))).text)
            return
        }
        let chosen = scenarios.filter { options.isChosen($0.name) }
        if chosen.isEmpty {
            say("No scenario's name begins with \(options.only.joined(separator: " or ")); bench --list names them.")
            exit(2)
        }
        if options.lists {
            for scenario in chosen { print(scenario.name) }
            return
        }
        if let variant = options.sample {
            let measurement = Measurement(rounds: options.rounds, warmUps: options.warmUps)
            // Others may begin with its name.
            guard let scenario = chosen.first(where: { $0.name == options.only.first }) else { return }
            for sample in measurement.run(scenario.variants[variant]) { print(sample) }
            return
        }
        try measure(chosen, options)
    }

    private static func measure(_ chosen: [Scenario], _ options: Options) throws {
        // Before the time that a run takes, if it is not there.
        let old = try options.old.map { try Report(contentsOf: url($0)) }
        let measurement = Measurement(rounds: options.rounds, warmUps: options.warmUps)
        let start = ContinuousClock.now
        var report = Report(machine: .current(), rounds: options.rounds)
        for (index, scenario) in chosen.enumerated() {
            let minutes = (ContinuousClock.now - start).components.seconds / 60
            say("[\(index + 1)/\(chosen.count), \(minutes) min] \(scenario.name) ...")
            report.add(measurement.run(scenario.limited(to: options.variants)))
            // With each one, so that a run that is ended has not been for nothing.
            if let file = options.json { try report.write(to: url(file)) }
        }
        print(Table(report).text)
        for peer in Peer.missing { print("Left out: \(peer.name), which is not there; \(peer.remedy)") }
        if let old { print("\n" + Comparison(old, report).text) }
    }

    private static func draw(_ file: String, _ options: Options) throws {
        let report = try Report(contentsOf: url(file))
        if let picture = options.showcase {
            try Data(Showcase(report).svg.utf8).write(to: url(picture))
        } else {
            try Charts(report).write(to: url(options.folder))
        }
        if let page = options.page { try Page(report).renew(url(page)) }
    }

    private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

    private static func url(_ path: String) -> URL { URL(fileURLWithPath: path) }
}
