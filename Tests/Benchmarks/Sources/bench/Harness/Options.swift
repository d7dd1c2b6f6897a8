import Foundation

/// What the command line asks for.
///
///     bench [--quick] [--only NAME]... [--rounds N] [--variants N] [--json FILE] [--compare OLD] [--list]
///     bench --compare OLD NEW              compares two files, and runs nothing
///     bench --charts FILE --into FOLDER [--page FILE]   draws a file's figures, and renews a page's tables
struct Options {
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
    var page: String?

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        func value(of argument: String) throws -> String {
            guard let value = rest.popFirst() else { throw Failure(message: "\(argument) needs a value") }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick":
                (rounds, warmUps) = (3, 1)
                // Inherited by the processes that take samples.
                setenv("LARDER_BENCH_SMALL", "1", 1)
            case "--list": lists = true
            case "--sample": sample = Int(try value(of: argument))
            case "--only": only.append(try value(of: argument))
            case "--json": json = try value(of: argument)
            case "--rounds": rounds = max(1, Int(try value(of: argument)) ?? rounds)
            case "--variants": variants = max(2, Int(try value(of: argument)) ?? variants)
            case "--compare":
                old = try value(of: argument)
                if let next = rest.first, !next.hasPrefix("--") { new = rest.popFirst() }
            case "--charts": charts = try value(of: argument)
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
