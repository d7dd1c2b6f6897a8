internal import Foundation
internal import Larder
internal import LarderStore

/// A change that was called for: it is shown, asked for and made.
struct Change {
    private let path: String
    private let arguments: Arguments
    /// The store as it was looked at.
    private let looked: Store?

    init(of looked: OpenedStore, _ arguments: Arguments) {
        (path, self.looked, self.arguments) = (looked.path, looked.store, arguments)
    }

    /// A change of a store that cannot be looked at.
    init(at path: String, _ arguments: Arguments) { (self.path, looked, self.arguments) = (path, nil, arguments) }

    /// Shows what would be done, asks, and does it.
    ///
    /// - Parameters:
    ///   - text: What would be done, as a sentence.
    ///   - name: The name that is typed on a terminal; nil if a `y` is enough.
    ///   - body: Does it, and returns a sentence that says what was done.
    func perform(_ text: String, typing name: String? = nil, _ body: () throws -> String) throws -> Int32 {
        try Output.line(text)
        if arguments.has("-n") {
            try Output.line("Nothing was changed (-n).")
            return 0
        }
        if !arguments.has("--yes") {
            guard isatty(STDIN_FILENO) == 1, Output.isTerminal else {
                throw Failure.usage("Nothing was changed. Add --yes to change it, or -n to see what would be done.")
            }
            try Output.finish()
            Output.note(name.map { "Type “\($0)” to do it: " } ?? "Do it? [y/N] ")
            let answer = readLine() ?? ""
            guard name.map({ answer == $0 }) ?? ["y", "Y", "yes"].contains(answer) else {
                try Output.line("Nothing was changed.")
                return 1
            }
        }
        try Output.finish()
        // One process cannot have the index of a log open for reading alone and for writing.
        try looked?.close()
        try Output.line(try body())
        return 0
    }

    /// Does the same with the store open for writing.
    ///
    /// What has looked at the store was of this release, so nothing is migrated here.
    func perform(
        _ text: String, typing name: String? = nil, recovery: Store.Options.Recovery = .fail,
        in body: (Store) throws -> String
    ) throws -> Int32 {
        try perform(text, typing: name) {
            var options = Store.Options()
            (options.recovery, options.runsUpkeep) = (recovery, false)
            options.opener = ("larder", CacheManager.libraryVersion)
            let store = try Store.open(path, options)
            let done = try body(store)
            try store.close()
            return done
        }
    }
}
