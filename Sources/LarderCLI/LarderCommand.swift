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
        case "help", "--help", "-h": try Output.put(help)
        default:
            guard let verb = verbs.first(where: { $0.name == name }) else {
                throw Failure.usage("There is no verb “\(name)”. “larder help” lists what there is.")
            }
            let status = try verb.run(Arguments(words, of: verb))
            try Output.finish()
            return status
        }
        try Output.finish()
        return 0
    }

    private static func end(_ failure: Failure) -> Never {
        // What was printed before stays in its place.
        do { try Output.finish() } catch {}
        Output.complain(failure.message)
        exit(failure.status)
    }

    private static let verbs = listVerbs + entryVerbs + healthVerbs

    private static var help: String {
        let width = verbs.map { $0.name.count + $0.words.count + 1 }.max() ?? 0
        let lines = verbs.map { verb in
            let call = "\(verb.name) \(verb.words)"
            return "  larder \(call)\(String(repeating: " ", count: width - call.count))  \(verb.summary)\n"
        }
        return """
            larder – looks into the stores of the Larder library, and changes nothing

            \(lines.joined())
            STORE is a path, or the name given to CacheManager(name:). KEY is a text or a number as it is, or has --text,
            --integer or --hex. --json prints for programs, --redact hides keys, and --at MOMENT judges ages at another moment.

            """
    }
}

extension Failure {
    init(_ error: StoreError) {
        let isEarlier = error.message.contains(StoreError.earlierRelease)
        let status: Int32 =
            switch error.code {
            case .corrupt: 65
            case .foreignFile: 76
            case .newerSchema: 78
            case .busy: 75
            case .readOnly: 77
            case .storageFull: 73
            default: isEarlier ? 78 : 69
            }
        let remedy =
            switch status {
            case 65: " “larder verify” says what can be read; the program repairs the store when it opens it."
            case 78 where !isEarlier: " So update larder."
            default: ""
            }
        self.init(status, error.message + remedy)
    }
}
