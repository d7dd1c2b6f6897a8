import Foundation
import Larder

/// An app that begins with a store from its bundle, and a widget that shows what the app has changed.
///
/// The program starts itself a second time, as `AppAndWidget widget`.
@main
struct AppAndWidget {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-widget")
        let store = folder.appendingPathComponent("group/news.sqlite")
        if CommandLine.arguments.last == "widget" { return try await widget(store) }

        if FileManager.default.fileExists(atPath: folder.path) { try FileManager.default.removeItem(at: folder) }
        let bundled = folder.appendingPathComponent("Bundled.sqlite")
        try await makeBundle(bundled)

        let manager = try await CacheManager.open(url: store, priming: bundled)
        let headlines = try await open(manager)
        let old = try await headlines.snapshot()
        print("The app begins with \(old.count) headlines from its bundle.")

        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["widget"]
        process.standardOutput = output
        try process.run()
        var lines = output.fileHandleForReading.lines().makeAsyncIterator()
        print(try await lines.next() ?? "")

        // One commit, so the widget gets one batch.
        try await manager.transaction { transaction in
            try transaction.setValue("Rain until Friday", forKey: 2, in: headlines)
            try transaction.setValue("Bread is cheaper", forKey: 4, in: headlines)
            try transaction.removeValue(forKey: 3, in: headlines)
        }
        while let line = try await lines.next() { print(line) }
        process.waitUntilExit()
        try await manager.close()
    }

    private static func open(_ manager: CacheManager) async throws -> Cache<Int, String> {
        try await manager.cache(named: "headlines", version: "1", maxAge: .unlimited)
    }

    /// A step of the app's build; `larder bake` does the same with any store.
    private static func makeBundle(_ file: URL) async throws {
        let store = file.deletingLastPathComponent().appendingPathComponent("build.sqlite")
        let manager = try await CacheManager.open(url: store)
        let headlines = try await open(manager)
        try await headlines.setValues([1: "Welcome", 2: "Sun until Friday", 3: "Tickets are on sale"])
        try await manager.bake(to: file)
        try await manager.close()
    }

    /// The second process.
    private static func widget(_ store: URL) async throws {
        let manager = try await CacheManager.open(url: store)
        let headlines = try await open(manager)
        let changes = headlines.changes()
        let shown = try await headlines.snapshot()
        say("The widget's first view shows “\(shown[2] ?? "nothing")”.")
        for await change in changes {
            var now = shown
            if change.isReset {
                // The app was faster than the first wait for a change.
                now = try await headlines.snapshot()
            } else {
                now.merge(change.updated) { $1 }
                for key in change.removed { now[key] = nil }
            }
            show(now, instead: shown)
            break
        }
        try await manager.close()
    }

    private static func show(_ now: [Int: String], instead old: [Int: String]) {
        for (key, headline) in now.sorted(by: { $0.key < $1.key }) where old[key] != headline {
            say("The widget shows number \(key): “\(headline)”.")
        }
        for key in old.keys.sorted() where now[key] == nil { say("The widget no longer shows number \(key).") }
    }

    private static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}

extension FileHandle {
    /// The lines that another process prints.
    fileprivate func lines() -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { continuation in
            let reader = Thread {
                var rest = Data()
                while case let data = self.availableData, !data.isEmpty {
                    rest.append(data)
                    while let end = rest.firstIndex(of: 10) {
                        continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                        rest = Data(rest[(end + 1)...])
                    }
                }
                continuation.finish()
            }
            reader.start()
        }
    }
}
