internal import Larder
internal import LarderStore

/// The verbs that explain the command.
let helpVerbs = [
    Verb(name: "help", words: "[VERB]", summary: "what a verb does, and its options", flags: ["--man"], common: []) {
        arguments in
        if arguments.has("--man") {
            try Output.put(Help.manual)
        } else if let name = arguments[0] {
            try Output.put(Help.text(of: try LarderCommand.verb(name)))
        } else {
            try Output.put(Help.overview)
        }
        return 0
    },
    Verb(
        name: "completions", words: "SHELL [STORE]", summary: "a script that completes words in bash, zsh or fish",
        common: []
    ) { arguments in
        // What the scripts ask: the stores of this user, or the caches of one.
        if arguments[0] == "names" {
            let names = try Completions.names(arguments[1], arguments)
            try Output.put(names.filter { Text.escaped($0) == $0 }.map { $0 + "\n" }.joined())
            return 0
        }
        guard let script = Completions.script(for: arguments[0] ?? "") else {
            throw Failure.usage("“completions” is called with one of: bash, zsh, fish")
        }
        try Output.put(script)
        return 0
    },
]

/// What the command says of itself.
enum Help {
    /// The value of each option, if it has one, and what it does.
    private static let options: [String: (value: String, text: String)] = [
        "--prefix": ("TEXT", "keys that begin with the text"), "--match": ("GLOB", "keys that match, as covers/*.jpg"),
        "--tag": ("TAG", "entries that have the tag"), "--larger": ("SIZE", "above a size, as 64K or 1.5M"),
        "--older": ("AGE", "written longer ago, as 90s, 2h or 7d"),
        "--by": ("ORDER", "keys: key, written, accessed or size; top: size, age or access"),
        "--limit": ("N", "at most so many"),
        "--expired": ("", "those that have expired, instead of those that have not"),
        "-r": ("", "in the reverse order"), "-0": ("", "a zero byte behind each key, for xargs -0"),
        "--text": ("", "KEY is a text"), "--integer": ("", "KEY is a number"),
        "--hex": ("", "KEY is CBOR in hexadecimal digits; keys: prints keys that are neither texts nor numbers so"),
        "--raw": ("", "the stored bytes"),
        "--every": ("AGE", "the time between two lines; 1s if it is missing"), "-o": ("FILE", "the file to write"),
        "--to-size": ("SIZE", "until the entries have so many bytes"),
        "--to-count": ("N", "until there are so many entries"), "--json": ("", "a line of JSON for each object"),
        "--redact": ("", "hashes in place of keys and tags"),
        "--at": ("MOMENT", "judges ages at another moment, as 2026-11-28T12:00:00Z"),
        "-n": ("", "only says what would be done"), "--yes": ("", "does not ask"),
        "--man": ("", "the manual, in the format of man"),
    ]

    private static func options(of verb: Verb) -> [(name: String, text: String)] {
        (verb.allFlags + verb.allValues).map { name in
            let option = options[name] ?? ("", "")
            return (option.value.isEmpty ? name : "\(name) \(option.value)", option.text)
        }
    }

    private static let notes = """
        STORE is a path, or the name given to CacheManager(name:). KEY is a text or a number as it is, or has --text,
        --integer or --hex. --json prints for programs, --redact hides keys, and --at MOMENT judges ages at another moment.

        """

    static var overview: String {
        let shown = (listVerbs + entryVerbs + healthVerbs + drawingVerbs).map { ("\($0.name) \($0.words)", $0.summary) }
        return """
            larder – looks into the stores of the Larder library, and changes what it is told to change

            \(lines(shown.map { ("larder " + $0, $1) }))
              larder \(changingVerbs.map(\.name).joined(separator: "|")) STORE …  change it, and ask before
              larder bake STORE FILE  a copy to begin with; larder help VERB; larder completions bash|zsh|fish

            \(notes)
            """
    }

    static func text(of verb: Verb) -> String {
        let asks =
            verb.isChange ? "\nIt says what it would do, and asks. Elsewhere than on a terminal it needs --yes.\n" : ""
        return "larder \(verb.name) \(verb.words)\n\(verb.summary)\n\(asks)\n" + lines(options(of: verb)) + "\n" + notes
    }

    private static func lines(_ pairs: [(String, String)]) -> String {
        let width = pairs.map(\.0.count).max() ?? 0
        return pairs.map { pair in
            "  " + pair.0 + String(repeating: " ", count: width - pair.0.count) + "  " + pair.1 + "\n"
        }.joined()
    }

    /// The page of the manual, as troff.
    static var manual: String {
        func escaped(_ text: String) -> String {
            text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("“", with: "\\(lq")
                .replacing("”", with: "\\(rq")
        }
        var page = """
            .TH LARDER 1 "" "larder \(CacheManager.libraryVersion)"
            .SH NAME
            larder \\- looks into the stores of the Larder library
            .SH SYNOPSIS
            .B larder
            .I VERB
            [STORE] [CACHE] [KEY] [OPTIONS]
            .SH DESCRIPTION
            \(escaped(notes)).SH VERBS

            """
        for verb in LarderCommand.verbs {
            page += ".SS larder \(verb.name) \(escaped(verb.words))\n\(escaped(verb.summary))\n"
            for option in options(of: verb) {
                page += ".TP\n.B \(escaped(option.name))\n\(escaped(option.text))\n"
            }
        }
        page += ".SH EXIT STATUS\n"
        for (status, text) in [
            ("0", "done"), ("1", "a negative answer: no such key, damage was found, or the question was declined"),
            ("64", "a wrong call"), ("65, 66, 76", "a damaged store, none, or a file of another program"),
            ("69", "the store cannot be reached, or has vanished"),
            ("73, 74", "a file or the output cannot be written"), ("75", "the store is busy"), ("77", "no permission"),
            ("78", "a store of another release"), ("130", "interrupted"),
        ] { page += ".TP\n\(status)\n\(text)\n" }
        return page
    }
}

/// Scripts that complete verbs, options and paths.
private enum Completions {
    static func script(for shell: String) -> String? {
        switch shell {
        case "bash": bash
        case "zsh": "#compdef larder\nautoload -U +X bashcompinit && bashcompinit\n" + bash
        case "fish": fish
        default: nil
        }
    }

    /// The names of the stores of this user, or of the caches of a store.
    static func names(_ store: String?, _ arguments: Arguments) throws -> [String] {
        guard let store else {
            return OpenedStore.names(in: try OpenedStore.cachesFolder()).filter { $0.hasSuffix(".sqlite") }
                .map { String($0.dropLast(7)) }
        }
        return try OpenedStore(store, arguments).look(counts: false).caches.map { $0.declaration.name }
    }

    private static var bash: String {
        let cases = LarderCommand.verbs.map { verb in
            "    \(verb.name)) options='\((verb.allFlags + verb.allValues).joined(separator: " "))' ;;"
        }
        return """
            _larder() {
              local word=${COMP_WORDS[COMP_CWORD]} options= IFS=$'\\n'
              local verbs='\(LarderCommand.verbs.map(\.name).joined(separator: " "))'
              if [ "$COMP_CWORD" -eq 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
                COMPREPLY=($(compgen -W "${verbs// /$IFS}" -- "$word"))
                return
              fi
              case ${COMP_WORDS[1]} in
            \(cases.joined(separator: "\n"))
              esac
              case $word in
                -*) COMPREPLY=($(compgen -W "${options// /$IFS}" -- "$word")) ;;
                *)
                  COMPREPLY=($(compgen -f -- "$word"))
                  # Not by compgen -W, which would run what a name of a cache says.
                  local name store=()
                  [ "$COMP_CWORD" -eq 3 ] && store=("${COMP_WORDS[2]}")
                  if [ "$COMP_CWORD" -le 3 ]; then
                    while IFS= read -r name; do
                      [ "${name:0:${#word}}" = "$word" ] && COMPREPLY+=("$name")
                    done < <(larder completions names ${store[@]+"${store[@]}"} 2>/dev/null)
                  fi ;;
              esac
            }
            complete -o filenames -F _larder larder

            """
    }

    private static var fish: String {
        """
        complete -c larder -n 'test (count (commandline -opc)) -eq 2' -a '(larder completions names 2>/dev/null)'
        complete -c larder -n 'test (count (commandline -opc)) -eq 3' \
            -a '(larder completions names (commandline -opc)[3] 2>/dev/null)'

        """
            + LarderCommand.verbs.map { verb in
                let condition = "__fish_seen_subcommand_from \(verb.name)"
                let options = (verb.allFlags + verb.allValues).map { option in
                    let kind = option.hasPrefix("--") ? "-l \(option.dropFirst(2))" : "-s \(option.dropFirst())"
                    return
                        "complete -c larder -n '\(condition)' \(kind)\(verb.allValues.contains(option) ? " -r" : "")\n"
                }
                return "complete -c larder -n __fish_use_subcommand -a \(verb.name) -d '\(verb.summary)'\n"
                    + options.joined()
            }.joined()
    }
}
