internal import Foundation
internal import LarderStore

/// A change that was called for: it is shown, asked for and made.
struct Change {
    let path: String
    let arguments: Arguments
    /// The store that was looked at, if that was possible.
    private let look: Store?

    init(of store: OpenedStore, _ arguments: Arguments) {
        (path, look, self.arguments) = (store.path, store.store, arguments)
    }

    init(at path: String, _ arguments: Arguments) { (self.path, look, self.arguments) = (path, nil, arguments) }

    /// Shows what would be done, asks, and does it with the store open for writing.
    ///
    /// - Parameters:
    ///   - text: What would be done, as a sentence.
    ///   - name: The name that is typed on a terminal; nil if a `y` is enough.
    ///   - body: Does it, and returns a sentence that says what was done.
    func write(_ text: String, typing name: String? = nil, _ body: (Store) throws -> String) throws -> Int32 {
        try perform(text, typing: name) {
            let store = try open()
            let done = try body(store)
            try store.close()
            return done
        }
    }

    /// Opens the store for writing; one that is not there or is of another release is refused.
    func open(
        _ recovery: Store.Options.Recovery = .fail, report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws -> Store {
        var options = Store.Options()
        (options.recovery, options.runsUpkeep, options.needsPresentStore) = (recovery, false, true)
        options.report = report
        return try Store.open(path, options)
    }

    /// Shows what would be done, asks, and does it with the store closed.
    func perform(_ text: String, typing name: String? = nil, _ body: () throws -> String) throws -> Int32 {
        let isMade = arguments.has("--yes") || canAsk
        try Output.line(isMade && !arguments.has("-n") ? text : "Would be done: " + text)
        if arguments.has("-n") {
            try Output.line("Nothing was changed (-n).")
            return 0
        }
        try Output.finish()
        if try !arguments.has("--yes") && !isWanted(name.map(Text.escaped)) {
            try Output.line("Nothing was changed.")
            return 1
        }
        // One process cannot have the index of a log open for reading alone and for writing.
        try look?.close()
        try Output.line(try body())
        return 0
    }

    private var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Output.isTerminal }

    private func isWanted(_ name: String?) throws -> Bool {
        guard canAsk else {
            throw Failure.usage("Nothing was changed. Add --yes to change it, or -n to see what would be done.")
        }
        Output.note(name.map { "Type “\($0)” to do it: " } ?? "Do it? [y/N] ")
        let answer = readLine() ?? ""
        return name.map { answer == $0 } ?? ["y", "Y", "yes"].contains(answer)
    }
}
