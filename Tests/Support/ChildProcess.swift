package import Foundation

/// One of the programs in Tests/Programs, run beside the test.
package final class ChildProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var rest = Data()

    /// Starts the program `name` of this package.
    package convenience init(
        _ name: String, _ arguments: [String], through wrapper: [String] = [], environment: [String: String] = [:]
    ) throws {
        try self.init(
            command: wrapper + [Self.folder.appendingPathComponent(name).path] + arguments, environment: environment)
    }

    /// Starts a command, whose first word is a path or the name of a program of the system.
    package init(command words: [String], environment added: [String: String] = [:]) throws {
        let isPath = words[0].hasPrefix("/")
        process.executableURL = URL(fileURLWithPath: isPath ? words[0] : "/usr/bin/env")
        process.arguments = isPath ? Array(words.dropFirst()) : words
        var environment = ProcessInfo.processInfo.environment
        // A crash that is part of the test must not wait for a backtrace.
        environment["SWIFT_BACKTRACE"] = "enable=no"
        environment.merge(added) { $1 }
        process.environment = environment
        Self.ignoresBrokenPipes
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    /// A line for a program that has ended is an error, and no end of the tests.
    private static let ignoresBrokenPipes: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

    /// Where the package's programs are built: beside the test bundle.
    package static let folder: URL = {
        let bundle = CommandLine.arguments.first { $0.contains(".xctest") } ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: bundle).deletingLastPathComponent()
    }()

    /// Whether the tests run with a sanitizer; its builds have a folder of their own.
    package static var isSanitized: Bool { folder.path.contains("sanitize") }

    package var identifier: Int32 { process.processIdentifier }

    /// The next line that the program prints; nil when it has ended.
    ///
    /// A program that prints nothing for too long is killed.
    package func line() -> String? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest = rest[(end + 1)...] }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            var ready = pollfd(fd: output.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
            switch poll(&ready, 1, Int32(Waiting.limit.components.seconds) * 1000) {
            case 0:
                // What it started may hold the pipe open, so nothing more is read.
                kill()
                return nil
            case -1: continue
            default: break
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty {
                defer { rest = Data() }
                return rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self)
            }
            rest += more
        }
    }

    /// Sends a line, and gives back the line that answers it.
    package func ask(_ text: String) throws -> String {
        try tell(text)
        guard let answer = line() else {
            process.waitUntilExit()
            throw EndedEarly(question: text, status: process.terminationStatus, reason: process.terminationReason)
        }
        return answer
    }

    /// The program ended instead of giving an answer.
    package struct EndedEarly: Error {
        let question: String
        let status: Int32
        let reason: Process.TerminationReason
    }

    /// Lets a program go on that waits for a line.
    package func goOn() throws {
        try tell("")
    }

    /// Gives the program a line to read.
    package func tell(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Ends the program at once, wherever it is.
    package func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Waits for the end; everything that was printed and not yet read.
    @discardableResult
    package func finish() throws -> (status: Int32, lines: [String]) {
        try input.fileHandleForWriting.close()
        var lines: [String] = []
        while let line = line() { lines.append(line) }
        process.waitUntilExit()
        return (process.terminationStatus, lines)
    }
}
