import Foundation
import Testing

/// Keys in several processes, each with hash seeds of its own.
struct KeyDeterminismTests {
    /// The lines that the program prints.
    func run() throws -> [String] {
        let products = Bundle.main.bundleURL.deletingLastPathComponent()
        let process = Process()
        let candidates = [products, Self.beside]
        let program = try #require(
            candidates.map { $0.appendingPathComponent("larder-test-keys") }
                .first { FileManager.default.isExecutableFile(atPath: $0.path) })
        process.executableURL = program
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private static var beside: URL { URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent() }

    @Test func `twenty processes write one key with sets and dictionaries alike`() throws {
        let runs = try (0..<20).map { _ in try run() }
        let first = try #require(runs.first)
        #expect(first.count == 3 && first[0].count > 1_000)
        #expect(Set(runs.map { $0[0] }).count == 1)
        #expect(Set(runs.map { $0[1] }).count == 1)
        // The sets themselves came in many orders.
        #expect(Set(runs.map { $0[2] }).count > 10)
    }
}
