internal import Foundation
internal import Larder
internal import LarderStore

/// The `larder` command.
@main
struct LarderCommand {
    static func main() {
        // A reader that goes ends the command, whatever its parent has set.
        signal(SIGPIPE, SIG_DFL)
        var words = Array(CommandLine.arguments.dropFirst())
        do {
            let name = words.isEmpty ? "help" : words.removeFirst()
            exit(try run(name, words))
        } catch let failure as Failure {
            end(failure)
        } catch let error as StoreError {
            end(Failure(error))
        } catch {
            end(Failure(70, "\(error)"))
        }
    }

    private static func run(_ name: String, _ words: [String]) throws -> Int32 {
        switch name {
        case "--version": try Output.line("larder \(CacheManager.libraryVersion)")
        case "--help", "-h": try Output.put(Help.overview)
        default:
            let verb = try verb(name)
            if words.contains("--help") {
                try Output.put(Help.text(of: verb))
                break
            }
            let status = try verb.run(Arguments(words, of: verb))
            try Output.finish()
            return status
        }
        try Output.finish()
        return 0
    }

    static func verb(_ name: String) throws(Failure) -> Verb {
        if let verb = verbs.first(where: { $0.name == name }) { return verb }
        let near = verbs.map { ($0.name, distance($0.name, name)) }.min { $0.1 < $1.1 }
        let hint = near.flatMap { $0.1 <= max(1, name.count / 3) ? " Did you mean “\($0.0)”?" : nil } ?? ""
        throw Failure.usage("There is no verb “\(name)”.\(hint) “larder help” lists what there is.")
    }

    /// The number of letters to add, to remove, to replace or to swap with the next one, from one word to another.
    private static func distance(_ a: String, _ b: String) -> Int {
        let (a, b) = (Array(a), Array(b))
        var rows = [Array(0...b.count)]
        for i in 1...max(1, a.count) where i <= a.count {
            var row = [i]
            for j in 1...max(1, b.count) where j <= b.count {
                var least = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    least = min(least, rows[i - 2][j - 2] + 1)
                }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }

    private static func end(_ failure: Failure) -> Never {
        // What was printed before stays in its place.
        do { try Output.finish() } catch {}
        Output.complain(failure.message)
        exit(failure.status)
    }

    static let verbs = listVerbs + entryVerbs + healthVerbs + drawingVerbs + changingVerbs + copyingVerbs + helpVerbs
}

extension Failure {
    init(_ error: StoreError) {
        let isEarlier = error.message.contains(StoreError.earlierRelease)
        let status: Int32 =
            switch error.code {
            case .corrupt: 65
            case .foreignFile: 76
            case .newerSchema: 78
            case .busy, .superseded: 75
            case .tooLarge: 65
            case .readOnly: 77
            case .storageFull: 73
            default: isEarlier ? 78 : 69
            }
        let remedy =
            error.code == .corrupt
            ? " “larder repair” saves what can be read, as the program does when it opens the store."
            : error.message.contains(StoreError.missingIndex) ? " “larder repair” does that." : ""
        self.init(status, error.message + remedy)
    }
}
