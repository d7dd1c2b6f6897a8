import CSQLite
import Foundation

/// Where figures were taken; without it a number says little.
struct Machine: Codable {
    let processor: String
    let cores: Int
    let memoryGibibytes: Double
    let system: String
    let fileSystem: String
    let toolchain: String
    let sqlite: String
    let date: String

    static func current() -> Machine {
        Machine(
            processor: value(of: "model name", in: "/proc/cpuinfo")
                ?? output("sysctl", "-n", "machdep.cpu.brand_string"),
            cores: ProcessInfo.processInfo.activeProcessorCount,
            memoryGibibytes: rounded(Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30), digits: 3),
            system: output("uname", "-srm"),
            fileSystem: lastLine(output("df", "--output=fstype", Workplace.folder.path)),
            toolchain: firstLine(output("swift", "--version")),
            sqlite: String(cString: sqlite3_libversion()), date: Date().formatted(.iso8601))
    }

    /// One line of it.
    var text: String {
        "\(processor), \(cores) cores, \(Table.number(memoryGibibytes)) GiB, \(system), \(fileSystem), \(toolchain), "
            + "SQLite \(sqlite), \(date.prefix(10))"
    }

    private static func firstLine(_ text: String) -> String { text.split(separator: "\n").first.map(String.init) ?? "" }
    private static func lastLine(_ text: String) -> String { text.split(separator: "\n").last.map(String.init) ?? "" }

    private static func value(of name: String, in path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
    }

    /// What a program prints, or nothing where there is no such program.
    private static func output(_ arguments: String...) -> String {
        let (process, pipe) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { return "" }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// A number with so many digits that count, as nobody reads more.
func rounded(_ value: Double, digits: Int = 4) -> Double {
    guard value != 0, value.isFinite else { return value }
    return Double(String(format: "%.\(digits - 1)e", value)) ?? value
}
