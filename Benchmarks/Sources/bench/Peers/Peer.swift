import Foundation

/// Another store, in a program of its own that `make bench-peers` builds; see `Benchmarks/Peers`.
struct Peer {
    let name: String
    private let program: String
    /// How to come by it.
    let remedy: String

    private static let all = [
        Peer(name: "LMDB", program: "lmdb", remedy: "install liblmdb-dev, then make bench-peers"),
        Peer(name: "diskcache", program: "diskcache", remedy: "make bench-peers, with Python 3 and its venv"),
        Peer(name: "Redis", program: "redis", remedy: "install redis-server, then make bench-peers"),
    ]

    static var present: [Peer] { all.filter(\.isPresent) }
    static var missing: [Peer] { all.filter { !$0.isPresent } }

    private var path: String {
        URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../.build/peers/\(program)").standardized.path
    }

    private var isPresent: Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// Nanoseconds for each operation, as the program says.
    func measure(_ work: PeerWork) -> Double {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = [
            work.operation.rawValue, work.survives.rawValue, Workplace.path().path + ".peer", "\(PeerWork.entries)",
            "\(work.operations)",
        ]
        process.standardOutput = output
        attempt { try process.run() }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0, let time = Double(text.trimmingCharacters(in: .whitespacesAndNewlines))
        else { preconditionFailure("\(name) ended with \(process.terminationStatus) and said “\(text)”") }
        return time
    }
}

/// What everybody does in a process of its own, with values of 300 bytes.
struct PeerWork {
    enum Operation: String { case set, replace, get, miss }
    /// What a set that has returned survives.
    enum Survival: String { case crash, power }

    static let entries = 10_000

    let operation: Operation
    let survives: Survival

    var operations: Int {
        switch (operation, survives) {
        case (.set, .power), (.replace, .power): 200
        case (.set, _), (.replace, _): 2_000
        default: 10_000
        }
    }

    /// Nanoseconds for each operation, in this process.
    ///
    /// The keys are those of `peer.h`, but for the order.
    func measure(set: (Int, Data) -> Void, get: (Int) -> Data?) -> Double {
        var generator = SeededGenerator(seed: 41)
        let keys = (0..<operations).map { index in
            operation == .set ? Self.entries + index : Int.random(in: 0..<Self.entries, using: &generator)
        }
        for key in keys.prefix(200) where operation != .set { precondition(get(key)?.count == 300) }
        return nanoseconds(per: operations) {
            switch operation {
            case .set, .replace:
                for (index, key) in keys.enumerated() { set(key, blob(size: 300, edition: index)) }
            case .get: for key in keys { precondition(get(key)?.count == 300) }
            case .miss: for key in keys { precondition(get(key + Self.entries) == nil) }
            }
        }
    }
}
