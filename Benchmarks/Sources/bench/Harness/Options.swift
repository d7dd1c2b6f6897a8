import Foundation

/// What the command line asks for: see ``usage``.
struct Options {
    static let usage = """
        bench [--quick] [--only NAME]... [--rounds N] [--variants N] [--json FILE] [--compare OLD]
                              measures every scenario whose name begins with one of the names
        bench --list          the names
        bench --compare OLD NEW
                              compares two files of figures, and runs nothing
        bench --charts FILE --into FOLDER [--page FILE]
                              draws a file's figures, and renews a page's tables
        bench --charts FILE --showcase SVG [--page FILE]
                              draws the five operations of README, and renews its table
        """

    /// Whether stores are a tenth as large, to see that everything runs; what is measured then is no number to keep.
    static let isSmall = ProcessInfo.processInfo.environment["LARDER_BENCH_SMALL"] != nil

    var rounds = 11
    var warmUps = 2
    var only: [String] = []
    var json: String?
    var lists = false
    /// The variant whose samples are printed and nothing else, as a process of its own is asked.
    var sample: Int?
    /// How many variants of each scenario are run; 2 is the subject and its yardstick alone.
    var variants = Int.max
    /// The figures to compare with.
    var old: String?
    /// The figures to compare, instead of those of a run.
    var new: String?
    /// The figures to draw.
    var charts: String?
    var folder = "."
    /// The picture of README, instead of the charts of the page Performance.
    var showcase: String?
    var page: String?

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        func value(of argument: String) throws -> String {
            guard let value = rest.popFirst() else { throw Failure(message: "\(argument) needs a value") }
            return value
        }
        func number(of argument: String, atLeast least: Int) throws -> Int {
            let value = try value(of: argument)
            guard let number = Int(value), number >= least else {
                throw Failure(message: "\(argument) needs a number from \(least) on, and \(value) is none")
            }
            return number
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick":
                (rounds, warmUps) = (3, 1)
                // Inherited by the processes that take samples.
                setenv("LARDER_BENCH_SMALL", "1", 1)
            case "--list": lists = true
            case "--sample": sample = try number(of: argument, atLeast: 0)
            case "--only": only.append(try value(of: argument))
            case "--json": json = try value(of: argument)
            case "--rounds": rounds = try number(of: argument, atLeast: 1)
            case "--variants": variants = try number(of: argument, atLeast: 2)
            case "--compare":
                old = try value(of: argument)
                if let next = rest.first, !next.hasPrefix("--") { new = rest.popFirst() }
            case "--charts": charts = try value(of: argument)
            case "--showcase": showcase = try value(of: argument)
            case "--into": folder = try value(of: argument)
            case "--page": page = try value(of: argument)
            default: throw Failure(message: "unknown argument \(argument)")
            }
        }
    }

    /// Whether a scenario's name begins with one of the names asked for; all are if none was.
    func isChosen(_ name: String) -> Bool {
        only.isEmpty || only.contains { name.hasPrefix($0) }
    }

    struct Failure: Error { let message: String }
}
