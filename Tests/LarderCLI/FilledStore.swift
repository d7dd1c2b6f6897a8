import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What the command has printed, and how it has ended.
struct Printed {
    let status: Int32
    let lines: [String]
    /// The lines of the standard error.
    let errors: [String]
}

/// A store that was filled at 2023-11-14T22:13:20Z, and the command that looks at it an hour later.
struct FilledStore {
    let store: TemporaryStore

    init(of fileID: String) throws {
        store = try TemporaryStore(of: fileID)
        try fill()
    }

    private func fill() throws {
        let manager = try store.manager()
        let articles: Cache<Int, Article> = try manager.cache(
            named: "articles", version: "3", maxAge: .days(7),
            options: CacheOptions(memory: .disabled, disk: DiskLimits(countLimit: 100), accessGrain: .zero))
        try articles.setValue(
            Article(title: "On \"shelves\"\u{1B}[31m", tags: ["a", nil]), forKey: 42, tags: ["new", "jars"])
        try articles.setValue(Article(title: "On jars", tags: []), forKey: 7, cost: 5, extendedData: Data([1, 2]))
        let photos: Cache<String, Data> = try manager.cache(
            named: "photos", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 100))
        try photos.setValue(Data(repeating: 65, count: 3_000), forKey: "covers/large")
        try photos.setValue(Data("small".utf8), forKey: "covers/small\u{7}", maxAge: .minutes(1), pinned: true)
        try photos.setValue(Data("text".utf8), forKey: "1")
        store.clock.advance(by: .seconds(3600))
        _ = (articles[42], articles[8], photos["1"])
        try manager.close()
    }

    struct Article: Codable, Sendable {
        var title: String
        var tags: [String?]
    }

    /// Runs a verb over the store.
    func larder(_ words: [String]) throws -> Printed {
        try Self.larder([words[0], store.url.path] + words.dropFirst() + ["--at", "2023-11-14T23:13:20Z"])
    }

    /// Runs the command.
    ///
    /// - Parameters:
    ///   - wrapper: The words before the path of the command.
    ///   - program: The command, if it is not the one that was built.
    static func larder(
        _ words: [String], through wrapper: [String] = [], environment: [String: String] = [:], program: URL? = nil
    ) throws -> Printed {
        let folder = try TemporaryFolder()
        let errors = folder("errors")
        let program = program ?? ChildProcess.folder.appendingPathComponent("larder")
        let shell = try ChildProcess(
            command: ["sh", "-c", "exec \"$@\" 2> \"$ERRORS\"", "sh"] + wrapper + [program.path] + words,
            environment: environment.merging(["ERRORS": errors.path]) { $1 })
        let (status, lines) = try shell.finish()
        let text = try String(contentsOf: errors, encoding: .utf8)
        return Printed(status: status, lines: lines, errors: text.split(separator: "\n").map(String.init))
    }
}

extension Printed {
    /// Expects a status, these lines and, if the standard error is of interest, one line there that begins with a text.
    func expect(
        _ lines: String..., status: Int32 = 0, error: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(self.status == status, sourceLocation: sourceLocation)
        #expect(self.lines == lines, sourceLocation: sourceLocation)
        guard let error else { return }
        #expect(errors.count == 1, sourceLocation: sourceLocation)
        let isFound = errors.first?.hasPrefix("larder: ") == true && errors.first?.contains(error) == true
        #expect(isFound, "\(errors)", sourceLocation: sourceLocation)
    }
}
