/// The `larder` command: each verb is a file of its own.
@main
struct LarderCommand {
    static func main() {
        let words = CommandLine.arguments.dropFirst()
        switch words.first {
        case "--version": print(version)
        case nil, "--help", "help": print(help)
        case let word?: complain("larder: there is no verb “\(word)”; “larder --help” lists what there is")
        }
    }

    private static let help = """
        larder – looks at the stores of the Larder library

        USAGE
          larder --version    the version of the library
          larder --help       this text
        """
}
