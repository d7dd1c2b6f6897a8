internal import Foundation
internal import LarderLocks

/// What a node knows of its caches on the server.
final class RedisSpaces: Sendable {
    /// The number of a message: the milliseconds of its server, and its place among those of the same one.
    struct MessageID: Comparable, Sendable {
        let text: String
        private let milliseconds, place: UInt64

        init?(_ text: String) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 2, let first = UInt64(parts[0]), let second = UInt64(parts[1]) else { return nil }
            (self.text, milliseconds, place) = (text, first, second)
        }

        static func < (a: MessageID, b: MessageID) -> Bool { (a.milliseconds, a.place) < (b.milliseconds, b.place) }
    }

    private struct Space {
        /// The last message that this node has read, or whose confirmation it has.
        var known: MessageID?
        /// The connection on which the server was asked for it, the session that it was told, and the day.
        var session: (connection: Int, text: String, day: Int)?
        /// A Boolean value that indicates whether the server has lost what it had confirmed, and no node was told.
        var hasLostWrites = false
    }

    private let spaces = Mutex<[String: Space]>([:])

    /// Notes a message, and returns the number that it has.
    func note(_ id: String, in space: String) {
        guard let id = MessageID(id) else { return }
        spaces.withLock { $0[space, default: Space()].known = max($0[space]?.known ?? id, id) }
    }

    func known(in space: String) -> String { spaces.withLock { $0[space]?.known?.text } ?? "" }

    /// Returns what the server knows the node by on a connection; nil if it was not told on this day.
    func session(on connection: Int, in space: String, on day: Int) -> String? {
        spaces.withLock {
            $0[space]?.session.flatMap { $0.connection == connection && $0.day == day ? $0.text : nil }
        }
    }

    /// Notes that the server was told a session, and whether a message is missing.
    func begin(
        _ session: String, on connection: Int, in space: String, on day: Int, gone id: String?, hasLostWrites: Bool
    ) {
        spaces.withLock { spaces in
            var known = spaces[space] ?? Space()
            // The reply of an earlier connection may come late.
            if known.session.map({ $0.connection <= connection }) ?? true { known.session = (connection, session, day) }
            if let id, known.known?.text == id { known.known = nil }
            if hasLostWrites { known.hasLostWrites = true }
            spaces[space] = known
        }
    }

    func hasLoss(in space: String) -> Bool { spaces.withLock { $0[space]?.hasLostWrites ?? false } }

    /// Forgets a session that the server does not know.
    func end(_ session: String, in space: String) {
        spaces.withLock { if $0[space]?.session?.text == session { $0[space]?.session = nil } }
    }

    /// Returns whether the server has lost confirmed writes since the last call.
    func takeLoss(in space: String) -> Bool {
        spaces.withLock { spaces in
            defer { spaces[space]?.hasLostWrites = false }
            return spaces[space]?.hasLostWrites ?? false
        }
    }
}
