import Foundation
import LarderTestSupport

/// A folder on a disk that forgets: what was written and not synced may be lost with the power, in part, and in any order.
///
/// A file's bytes are safe once the file is synced; that it is there, under which name, once its folder is.
struct SimulatedDisk {
    /// What a file is; the folder above all has the number 0.
    private struct Node {
        let isFolder: Bool
        /// Whether it is the folder of large values, or something in it.
        let isOfLargeValues: Bool
        var bytes: [UInt8] = []
        /// What is not synced, with the number of the call.
        var pending: [(call: Int, change: Change)] = []
    }

    private enum Change {
        case write(Int, [UInt8])
        case size(Int)
        /// At least so many bytes.
        case room(Int)
    }

    /// A name in a folder comes to mean another node, or none.
    private struct Naming {
        let folder: Int
        let name: String
        let node: Int?
    }

    private let root: String
    private var nodes = [Node(isFolder: true, isOfLargeValues: false)]
    /// The names as the process sees them, and those that are safe.
    private var names: [Int: [String: Int]] = [0: [:]]
    private var safeNames: [Int: [String: Int]] = [0: [:]]
    /// Makings, deletions and moves that are not synced: a move is one, in whatever folders.
    private var pending: [(call: Int, namings: [Naming])] = []
    private var descriptors: [Descriptor: (node: Int, position: Int)] = [:]

    private struct Descriptor: Hashable {
        let process: Int
        let number: Int
    }
    private var ended = 0

    /// What a call did that this does not know how to follow.
    private(set) var strange: [String] = []

    /// What it says is safe and is not.
    enum Lie { case none, files, largeValues, folders }

    private let lie: Lie

    init(_ folder: URL, _ lie: Lie) {
        root = folder.path
        self.lie = lie
    }

    private func isLie(_ node: Int) -> Bool {
        switch lie {
        case .none: false
        case .files: !nodes[node].isFolder
        case .folders: nodes[node].isFolder
        case .largeValues: !nodes[node].isFolder && nodes[node].isOfLargeValues
        }
    }

    // MARK: - Calls

    mutating func follow(_ call: FileTrace.Call) {
        defer { ended += 1 }
        switch call.name {
        case "open", "creat": open(call, call.path(0), flags: 1)
        case "openat": open(call, path(call, 0), flags: 2)
        case "close": if let descriptor = descriptor(call) { descriptors[descriptor] = nil }
        case "write": write(call, at: nil)
        case "pwrite64": write(call, at: call.number(3))
        case "ftruncate": if let node = node(call) { change(node, .size(call.number(1) ?? 0)) }
        case "fallocate": allocate(call)
        case "fsync", "fdatasync": if let node = node(call) { sync(node, before: call.begin) }
        case "rename": move(call.path(0), call.path(1))
        case "renameat", "renameat2": move(path(call, 0), path(call, 2))
        case "unlink", "rmdir": remove(call.path(0))
        case "unlinkat": remove(path(call, 0))
        case "mkdir": make(call.path(0), isFolder: true)
        case "mkdirat": make(path(call, 0), isFolder: true)
        default:
            let isOurs = call.arguments.contains { argument in
                switch argument {
                case .number(let number): descriptors[Descriptor(process: call.process, number: number)] != nil
                case .bytes(let bytes): place(String(decoding: bytes, as: UTF8.self)) != nil
                case .word: false
                }
            }
            if isOurs { strange.append(call.name) }
        }
    }

    /// A path by a folder's descriptor and a name: it is turned into one by a number, which cannot stand at a path's start.
    private func path(_ call: FileTrace.Call, _ index: Int) -> String {
        let name = call.path(index + 1)
        guard !name.hasPrefix("/"), let folder = descriptor(call, index), let node = descriptors[folder]?.node else {
            return name
        }
        return "\(node):\(name)"
    }

    /// The folder and the name that a path means; nil outside.
    private func place(_ path: String) -> (folder: Int, name: String)? {
        if let colon = path.firstIndex(of: ":"), let node = Int(path[..<colon]) {
            return (node, String(path[path.index(after: colon)...]))
        }
        guard path.hasPrefix(root + "/") else { return nil }
        var parts = path.dropFirst(root.count + 1).split(separator: "/").map(String.init)
        guard let last = parts.popLast() else { return nil }
        var folder = 0
        for part in parts {
            guard let next = names[folder]?[part] else { return nil }
            folder = next
        }
        return (folder, last)
    }

    private func descriptor(_ call: FileTrace.Call, _ index: Int = 0) -> Descriptor? {
        call.number(index).map { Descriptor(process: call.process, number: $0) }
    }

    private func node(_ call: FileTrace.Call) -> Int? { descriptor(call).flatMap { descriptors[$0]?.node } }

    private mutating func open(_ call: FileTrace.Call, _ path: String, flags: Int) {
        let descriptor = Descriptor(process: call.process, number: call.result)
        if path == root {
            descriptors[descriptor] = (0, 0)
            return
        }
        guard let place = place(path) else { return }
        if place.name == "." {
            descriptors[descriptor] = (place.folder, 0)
            return
        }
        if names[place.folder]?[place.name] == nil {
            guard call.has("O_CREAT", flags) else { return strange.append("opened \(path), which is not there") }
            make(path, isFolder: false)
        }
        guard let node = names[place.folder]?[place.name] else { return }
        if call.has("O_TRUNC", flags) { change(node, .size(0)) }
        if call.has("O_APPEND", flags) { strange.append("opened \(path) to append") }
        descriptors[descriptor] = (node, 0)
    }

    private mutating func write(_ call: FileTrace.Call, at offset: Int?) {
        guard let number = descriptor(call), let place = descriptors[number] else { return }
        change(place.node, .write(offset ?? place.position, Array(call.bytes(1).prefix(call.result))))
        if offset == nil { descriptors[number]?.position += call.result }
    }

    private mutating func allocate(_ call: FileTrace.Call) {
        guard let node = node(call) else { return }
        // Without flags blocks are added behind the end. With this flag alone nothing changes that can be read.
        if case .word("FALLOC_FL_KEEP_SIZE") = call.arguments[1] { return }
        guard call.number(1) == 0, let start = call.number(2), let count = call.number(3) else {
            return strange.append(call.name)
        }
        change(node, .room(start + count))
    }

    private mutating func change(_ node: Int, _ change: Change) { nodes[node].pending.append((ended, change)) }

    private mutating func make(_ path: String, isFolder: Bool) {
        guard let place = place(path) else { return }
        let isFolderOfValues = isFolder && place.name.hasSuffix(".files")
        nodes.append(
            Node(isFolder: isFolder, isOfLargeValues: isFolderOfValues || nodes[place.folder].isOfLargeValues))
        if isFolder { names[nodes.count - 1] = [:] }
        rename([Naming(folder: place.folder, name: place.name, node: nodes.count - 1)])
    }

    private mutating func remove(_ path: String) {
        guard let place = place(path) else { return }
        rename([Naming(folder: place.folder, name: place.name, node: nil)])
    }

    private mutating func move(_ path: String, _ target: String) {
        guard let (from, to) = place(path).flatMap({ from in place(target).map { (from, $0) } }) else {
            if place(path) != nil || place(target) != nil { strange.append("moved \(path) to \(target)") }
            return
        }
        rename([
            Naming(folder: to.folder, name: to.name, node: names[from.folder]?[from.name]),
            Naming(folder: from.folder, name: from.name, node: nil),
        ])
    }

    private mutating func rename(_ namings: [Naming]) {
        for naming in namings { names[naming.folder]?[naming.name] = naming.node }
        pending.append((ended, namings))
    }

    private mutating func sync(_ node: Int, before begin: Int) {
        if isLie(node) { return }
        guard nodes[node].isFolder else {
            for (call, change) in nodes[node].pending where call < begin { Self.apply(change, to: &nodes[node].bytes) }
            nodes[node].pending.removeAll { $0.call < begin }
            return
        }
        var rest: [(call: Int, namings: [Naming])] = []
        for (call, namings) in pending {
            guard call < begin, namings.contains(where: { $0.folder == node }) else {
                rest.append((call, namings))
                continue
            }
            Self.apply(namings, to: &safeNames)
            // What came before it can no longer come after it.
            for index in rest.indices {
                rest[index].namings.removeAll { old in
                    namings.contains { $0.folder == old.folder && $0.name == old.name }
                }
            }
        }
        pending = rest
    }

    // MARK: - The loss of power

    /// How much of what is not synced is there afterwards.
    enum Mercy: CaseIterable { case nothing, everything, some, sectors }

    /// Writes what is left when the power goes now into a folder that is empty.
    func lose(into folder: URL, _ random: inout Seeded) throws {
        let (mercyOnNames, mercyOnBytes) = (
            Mercy.allCases.randomElement(using: &random)!, Mercy.allCases.randomElement(using: &random)!
        )
        var left = safeNames
        let journal = Int.random(in: 0...pending.count, using: &random)
        for (index, naming) in pending.enumerated() {
            let isLeft =
                switch mercyOnNames {
                case .nothing: false
                case .everything: true
                // As a journal would have it, and in any order.
                case .some: index < journal
                case .sectors: Bool.random(using: &random)
                }
            if isLeft { Self.apply(naming.namings, to: &left) }
        }
        try write(0, left, into: folder, mercyOnBytes, &random)
    }

    private func write(
        _ node: Int, _ names: [Int: [String: Int]], into folder: URL, _ mercy: Mercy, _ random: inout Seeded
    ) throws {
        for (name, node) in (names[node] ?? [:]).sorted(by: { $0.key < $1.key }) {
            let url = folder.appendingPathComponent(name)
            if nodes[node].isFolder {
                try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
                try write(node, names, into: url, mercy, &random)
            } else {
                try Data(bytes(of: node, mercy, &random)).write(to: url)
            }
        }
    }

    private func bytes(of node: Int, _ mercy: Mercy, _ random: inout Seeded) -> [UInt8] {
        var bytes = nodes[node].bytes
        for (_, change) in nodes[node].pending {
            switch mercy {
            case .nothing: break
            case .everything: Self.apply(change, to: &bytes)
            case .some: if Bool.random(using: &random) { Self.apply(change, to: &bytes) }
            case .sectors: Self.applyInPart(change, to: &bytes, &random)
            }
        }
        return bytes
    }

    /// Writes some sectors of what was to be written; what a file did not have before has zeros.
    private static func applyInPart(_ change: Change, to bytes: inout [UInt8], _ random: inout Seeded) {
        guard case .write(let offset, let written) = change else { return apply(change, to: &bytes) }
        var start = 0
        while start < written.count {
            let end = min(written.count, (offset + start) / 512 * 512 + 512 - offset)
            if Int.random(in: 0..<4, using: &random) > 0 {
                apply(.write(offset + start, Array(written[start..<end])), to: &bytes)
            }
            start = end
        }
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .size(let size):
            if bytes.count > size { bytes.removeLast(bytes.count - size) }
            if bytes.count < size { bytes += [UInt8](repeating: 0, count: size - bytes.count) }
        case .room(let size): if bytes.count < size { apply(.size(size), to: &bytes) }
        case .write(let offset, let written):
            apply(.room(offset + written.count), to: &bytes)
            bytes.withUnsafeMutableBytes { bytes in
                written.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + written.count]).copyMemory(from: $0)
                }
            }
        }
    }

    private static func apply(_ namings: [Naming], to names: inout [Int: [String: Int]]) {
        for naming in namings { names[naming.folder, default: [:]][naming.name] = naming.node }
    }
}
