import Foundation
import Larder

/// Opens a store, shows where it is and what becomes of a damaged one, and leaves nothing behind.
@main
struct QuickStart {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-quickstart-\(UUID())")
        defer { removeFolder(folder) }
        let url = folder.appendingPathComponent("demo.sqlite")

        step("A manager owns one database; the folder and the file are made for their owner alone.")
        var manager = try CacheManager(url: url)
        show(folder)
        try await manager.close()

        step("Somebody writes over the file. Opening sets it aside and starts anew, and an event says so.")
        for ending in ["", "-wal", "-shm"] { try Data("oops".utf8).write(to: URL(fileURLWithPath: url.path + ending)) }
        manager = try CacheManager(url: url)
        for await event in manager.events.prefix(1) { print("  event:", event.message) }
        show(folder)

        step("This build of the program has a stamp of its own, for caches that must not outlive it.")
        print("  \(CacheVersion.buildStamp)")

        step("A closed manager says so.")
        try await manager.close()
        do {
            _ = try CacheManager(name: "not/a/name")
        } catch {
            print("  \(error)")
        }
    }

    private static func step(_ text: String) {
        print("\n" + text)
    }

    private static func show(_ folder: URL) {
        do {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() { print("  " + name) }
        } catch {
            print("  cannot list \(folder.path): \(error)")
        }
    }

    private static func removeFolder(_ folder: URL) {
        do {
            try FileManager.default.removeItem(at: folder)
        } catch {
            print("cannot delete \(folder.path): \(error)")
        }
    }
}
