import Foundation

/// What a process did to files, and what it said, as its tracer wrote it down.
struct FileTrace {
    /// The arguments of the tracer that make it write down what is read here.
    static let arguments = [
        "-f", "-xx", "-s", "4194304", "-e",
        "trace=openat,open,creat,close,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,"
            + "sync_file_range,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,dup,dup2,dup3,"
            + "copy_file_range,sendfile,clone,clone3,fork,vfork",
    ]

    /// A call that has succeeded, or that has begun and whose beginning is what counts.
    struct Call {
        let name: String
        let arguments: [Argument]
        let result: Int
        /// How many calls had ended when it began.
        let begin: Int
        /// The process of the thread that made it.
        var process = 0
    }

    enum Argument {
        case bytes([UInt8])
        case number(Int)
        /// Flags, and names of constants.
        case word(String)
    }

    private(set) var calls: [Call] = []
    private var unfinished: [Substring: (line: [UInt8], begin: Int)] = [:]
    /// The threads and processes by the thread that has begun each.
    private var begun: [Int: (by: Int, isThread: Bool)] = [:]

    init(_ url: URL) throws {
        let bytes = [UInt8](try Data(contentsOf: url))
        var start = 0
        while let end = Self.place(of: UInt8(ascii: "\n"), in: bytes, from: start) {
            read(Array(bytes[start..<end]))
            start = end + 1
        }
        // A thread may have made calls before its beginning was written down.
        for index in calls.indices { calls[index].process = process(of: calls[index].process) }
    }

    private func process(of thread: Int) -> Int {
        guard let begun = begun[thread], begun.isThread else { return thread }
        return process(of: begun.by)
    }

    private mutating func add(_ call: Call, _ thread: Substring) {
        var call = call
        call.process = Int(thread) ?? 0
        if ["clone", "clone3", "fork", "vfork"].contains(call.name) {
            let isThread = call.arguments.contains {
                if case .word(let word) = $0 { word.contains("CLONE_THREAD") } else { false }
            }
            begun[call.result] = (call.process, isThread)
        } else {
            calls.append(call)
        }
    }

    /// Where a byte comes next; the search of arrays takes its time in debug builds.
    fileprivate static func place(of byte: UInt8, in bytes: [UInt8], from start: Int) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard start < bytes.count, let first = bytes.baseAddress,
                let found = memchr(first + start, Int32(byte), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - first
        }
    }

    private mutating func read(_ line: [UInt8]) {
        let head = String(decoding: line.prefix(80), as: UTF8.self)
        let thread = head.prefix { $0 != " " }
        if head.dropFirst(thread.count).drop(while: { $0 == " " }).hasPrefix("<... ") {
            guard let start = unfinished.removeValue(forKey: thread),
                let mark = line.firstRange(of: Array(" resumed>".utf8))
            else { return }
            finish(start.line + line[mark.upperBound...], start.begin, thread)
        } else if line.suffix(17).elementsEqual(" <unfinished ...>".utf8) {
            let start = Array(line.dropLast(17))
            unfinished[thread] = (start, calls.count)
            // What is said was done before, and who closes a file lets others have its number at once.
            if let call = call(start + Array(") = 0".utf8), calls.count), call.counts(atItsBeginning: true) {
                add(call, thread)
            }
        } else {
            guard let call = call(line, calls.count), call.result >= 0 else { return }
            add(call, thread)
        }
    }

    private mutating func finish(_ line: [UInt8], _ begin: Int, _ thread: Substring) {
        guard let call = call(line, begin), call.result >= 0, !call.counts(atItsBeginning: true) else { return }
        add(call, thread)
    }

    private func call(_ line: [UInt8], _ begin: Int) -> Call? {
        var reader = LineReader(line)
        return reader.call(begin)
    }
}

extension FileTrace.Call {
    /// Whether it is what the process says, or a closing.
    func counts(atItsBeginning: Bool) -> Bool { name == "close" || said != nil }

    /// What it says to the test.
    var said: String? {
        guard name == "write", case .number(1)? = arguments.first, case .bytes(let bytes) = arguments[1] else {
            return nil
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func bytes(_ index: Int) -> [UInt8] { if case .bytes(let bytes) = arguments[index] { bytes } else { [] } }
    func path(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }
    func number(_ index: Int) -> Int? { if case .number(let number) = arguments[index] { number } else { nil } }
    func has(_ flag: String, _ index: Int) -> Bool {
        if case .word(let word) = arguments[index] { word.contains(flag) } else { false }
    }
}

/// Takes a line of the tracer's apart: `1234 pwrite64(5, "\x61\x62", 2, 4096) = 2`.
private struct LineReader {
    private let line: [UInt8]
    private var place = 0

    init(_ line: [UInt8]) { self.line = line }

    mutating func call(_ begin: Int) -> FileTrace.Call? {
        while place < line.count, line[place] != UInt8(ascii: " ") { place += 1 }
        while place < line.count, line[place] == UInt8(ascii: " ") { place += 1 }
        let start = place
        while place < line.count, isNameByte(line[place]) { place += 1 }
        guard place < line.count, line[place] == UInt8(ascii: "("), place > start else { return nil }
        let name = String(decoding: line[start..<place], as: UTF8.self)
        place += 1
        var arguments: [FileTrace.Argument] = []
        while place < line.count, line[place] != UInt8(ascii: ")") {
            if line[place] == UInt8(ascii: ",") || line[place] == UInt8(ascii: " ") {
                place += 1
            } else if line[place] == UInt8(ascii: "\"") {
                arguments.append(.bytes(bytes()))
            } else {
                arguments.append(word())
            }
        }
        let tail = String(decoding: line[min(place, line.count)...].prefix(60), as: UTF8.self)
        guard let equals = tail.firstRange(of: "= ") else { return nil }
        let result = tail[equals.upperBound...].prefix { $0.isNumber || $0 == "-" }
        return FileTrace.Call(name: name, arguments: arguments, result: Int(result) ?? -1, begin: begin)
    }

    private func isNameByte(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || (97...122).contains(byte) || (48...57).contains(byte)
    }

    private mutating func word() -> FileTrace.Argument {
        let start = place
        while place < line.count, line[place] != UInt8(ascii: ","), line[place] != UInt8(ascii: ")") { place += 1 }
        let word = String(decoding: line[start..<place], as: UTF8.self)
        return Int(word).map { .number($0) } ?? .word(word)
    }

    /// `"\x61\x62"`, every byte in this form.
    private mutating func bytes() -> [UInt8] {
        let start = place + 1
        guard let end = FileTrace.place(of: UInt8(ascii: "\""), in: line, from: start) else { return [] }
        place = end + 1
        let count = (end - start) / 4
        return line.withUnsafeBufferPointer { line in
            [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                var from = start + 2
                for index in 0..<count {
                    buffer[index] = Self.digits[Int(line[from])] << 4 | Self.digits[Int(line[from + 1])]
                    from += 4
                }
                initialized = count
            }
        }
    }

    private static let digits: [UInt8] = (0...255).map { (byte: UInt8) -> UInt8 in
        switch byte {
        case 48...57: byte - 48
        case 97...102: byte - 87
        default: 0
        }
    }
}
