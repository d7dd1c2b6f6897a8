import Foundation
import Larder
import LarderTestSupport

extension StoreProgram {
    /// The verbs about the folder of spilled values, whose path is the first word.
    static func runBlobs(_ verb: String, _ arguments: [String]) throws {
        switch verb {
        case "blob-read": try read(arguments)
        case "blob-read-as-nobody":
            if getuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { exit(2) }
            try read(arguments)
        case "blob-read-without-descriptors": readWithoutDescriptors(arguments)
        case "blob-write": try write(arguments)
        case "blob-write-on": try writeOn(arguments)
        case "blob-fill": try fill(arguments)
        case "blob-memory": try useMemory(arguments)
        default: exit(2)
        }
    }

    private static func read(_ words: [String]) throws {
        say(reading(BlobFolder(path: words[0], syncs: false), words))
    }

    private static func reading(_ folder: BlobFolder, _ words: [String]) -> String {
        do throws(SystemError) {
            switch try folder.read(words[1], size: Int64(words[2]) ?? 0, checksum: Int64(words[3]) ?? 0) {
            case .bytes(let data): return "bytes \(data.count)"
            case .missing: return "missing"
            case .damaged: return "damaged"
            }
        } catch {
            return "error \(error.number)"
        }
    }

    /// Reads while the process may open no more files, and once it may again.
    private static func readWithoutDescriptors(_ words: [String]) {
        let folder = BlobFolder(path: words[0], syncs: false)
        var taken: [Int32] = []
        while true {
            let descriptor = dup(0)
            guard descriptor >= 0 else { break }
            taken.append(descriptor)
        }
        let first = reading(folder, words)
        for descriptor in taken { close(descriptor) }
        say(first)
        say(reading(folder, words))
    }

    /// Writes two files as for power loss, the second one over the first, and says what came of each.
    private static func write(_ words: [String]) throws {
        let folder = BlobFolder(path: words[0], syncs: true)
        for byte in [UInt8(1), 2] {
            do throws(SystemError) {
                let reference = try folder.write(Data(repeating: byte, count: 20_000))
                say("wrote", reference.name)
                if byte == 1 { try folder.giveUp(reference.name) }
            } catch {
                say("error", error.number)
            }
        }
    }

    /// Writes and gives up until it is killed, and says what it keeps.
    private static func writeOn(_ words: [String]) throws {
        let folder = BlobFolder(path: words[0], syncs: false)
        for number in 0..<100_000 {
            let reference = try folder.write(Data(repeating: UInt8(truncatingIfNeeded: number), count: 10_000 + number))
            if number % 4 == 0 {
                say(reference.name, reference.size, reference.checksum)
            } else {
                try folder.giveUp(reference.name)
            }
        }
    }

    /// Writes until the volume is full, then with what waits in the pool, and goes on when there is room.
    private static func fill(_ words: [String]) throws {
        let folder = BlobFolder(path: words[0], syncs: false)
        let bytes = Data(repeating: 7, count: 30_000)
        var kept: [BlobReference] = []
        do throws(SystemError) {
            while kept.count < 10_000 { kept.append(try folder.write(Data(repeating: 8, count: 45_000))) }
            say("never full")
        } catch {
            say("full", error.number)
        }
        let files = try FileManager.default.subpathsOfDirectory(atPath: words[0]).filter { $0.utf8.count > 2 }
        say("kept", files.count == kept.count, Set(files) == Set(kept.map(\.name)))
        // What waits in the pool is small, and the room that some of it leaves too.
        for _ in 0..<12 { if let last = kept.popLast() { try folder.giveUp(last.name) } }
        kept.append(try folder.write(Data(repeating: 9, count: 500_000)))
        say("pool", folder.poolFigures.count)
        try FileManager.default.removeItem(atPath: (words[0] as NSString).deletingLastPathComponent + "/ballast")
        kept.append(try folder.write(bytes))
        for reference in kept {
            guard case .bytes = try folder.read(reference.name, size: reference.size, checksum: reference.checksum)
            else {
                say("lost")
                return
            }
        }
        say("again")
    }

    /// Lets large values come and go, and says by how many MB the memory in use grew.
    private static func useMemory(_ words: [String]) throws {
        let folder = BlobFolder(path: words[0], syncs: false)
        func comeAndGo() throws {
            for megabytes in [50, 5, 50] {
                let data = Data(repeating: UInt8(megabytes), count: megabytes << 20)
                let reference = try folder.write(data)
                guard
                    case .bytes(let read) = try folder.read(
                        reference.name, size: reference.size, checksum: reference.checksum), read == data
                else {
                    say("lost")
                    return
                }
                try folder.giveUp(reference.name)
            }
        }
        // The first time brings in code and tables.
        try comeAndGo()
        let before = try residentPages()
        for _ in 0..<3 { try comeAndGo() }
        say("grew", try (residentPages() - before) * Int(getpagesize()) / 1_000_000)
    }

    private static func residentPages() throws -> Int {
        let line = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        return Int(line.split(separator: " ")[1]) ?? 0
    }
}

extension BlobFolder {
    fileprivate func write(_ data: Data) throws(SystemError) -> BlobReference {
        try data.withUnsafeBytes { bytes in Result { () throws(SystemError) in try write(bytes) } }.get()
    }
}
