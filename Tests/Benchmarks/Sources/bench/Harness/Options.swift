import Foundation

/// What the command line asks for: `bench [--quick] [--only NAME]... [--rounds N] [--variants N] [--json FILE] [--list]`.
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

    init(_ arguments: some Sequence<String>) throws {
        var rest = arguments.makeIterator()
        while let argument = rest.next() {
            switch argument {
            case "--quick":
                (rounds, warmUps) = (3, 1)
                // Inherited by the processes that take samples.
                setenv("LARDER_BENCH_SMALL", "1", 1)
            case "--list": lists = true
            case "--sample": sample = Int(try Self.value(of: argument, &rest))
            case "--only": only.append(try Self.value(of: argument, &rest))
            case "--json": json = try Self.value(of: argument, &rest)
            case "--rounds": rounds = max(1, Int(try Self.value(of: argument, &rest)) ?? rounds)
            case "--variants": variants = max(2, Int(try Self.value(of: argument, &rest)) ?? variants)
            default: throw Failure(message: "unknown argument \(argument)")
            }
        }
    }

    /// Whether a scenario's name begins with one of the names asked for; all are if none was.
    func isChosen(_ name: String) -> Bool {
        only.isEmpty || only.contains { name.hasPrefix($0) }
    }

    struct Failure: Error { let message: String }

    private static func value(of argument: String, _ rest: inout some IteratorProtocol<String>) throws -> String {
        guard let value = rest.next() else { throw Failure(message: "\(argument) needs a value") }
        return value
    }
}
