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
        throw Failure.usage("There is no verb “\(name)”. “larder help” lists what there is.")
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
