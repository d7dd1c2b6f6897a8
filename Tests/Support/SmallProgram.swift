import Foundation

/// A small program, compiled against what the tests themselves are linked from.
package enum SmallProgram {
    /// What the compiler is told of the modules, in the standard of the language.
    package static let options = [
        "-swift-version", "6", "-I", ChildProcess.folder.path + "/Modules", "-Xcc", "-fmodule-map-file=\(moduleMap)",
    ]

    private static let moduleMap = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/LarderCSQLite/module.modulemap").standardizedFileURL.path

    /// Runs a command, and gives its status and what it said: on its output alone, or with its complaints.
    package static func run(_ words: [String], withComplaints: Bool = false) throws -> (status: Int32, text: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        let pipe = Pipe()
        process.standardOutput = pipe
        if withComplaints { process.standardError = pipe }
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text)
    }

    /// What the compiler says of a source, without making anything of it.
    package static func check(_ source: String) throws -> (status: Int32, text: String) {
        let folder = try TemporaryFolder()
        let path = folder("program.swift")
        try Data(source.utf8).write(to: path)
        return try run(["swiftc", "-typecheck", path.path] + options, withComplaints: true)
    }
}
