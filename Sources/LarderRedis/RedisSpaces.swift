internal import Foundation
internal import LarderLocks

/// The number of a message: the milliseconds of its server, and its place among those of the same one.
struct RedisMessageID: Comparable, Sendable {
    let text: String
    private let milliseconds, place: UInt64

    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = UInt64(parts[0]), let second = UInt64(parts[1]) else { return nil }
        (self.text, milliseconds, place) = (String(text), first, second)
    }

    static func < (a: Self, b: Self) -> Bool { (a.milliseconds, a.place) < (b.milliseconds, b.place) }
}

/// A message, and the life of the server in which it was there, as one text: `ID LIFE`, or `ID LIFE CONFIRMED`.
///
/// A life is the server's own name for its history, which it changes when it starts and when it becomes the master. Within a life it does
/// not go back: what is missing was trimmed, evicted or deleted.
struct RedisPosition: Sendable {
    let id: RedisMessageID
    let life: String
    /// A later message that the node has a confirmation of and has not read.
    var confirmed: RedisMessageID?

    var text: String { ([id.text, life] + (confirmed.map { [$0.text] } ?? [])).joined(separator: " ") }

    init(_ id: RedisMessageID, in life: String) { (self.id, self.life) = (id, life) }

    /// - Parameter text: A text; nil for one that is no position of a server.
    init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard let id = parts.first.flatMap({ RedisMessageID($0) }) else { return nil }
        self.init(id, in: parts.count > 1 ? String(parts[1]) : "")
        confirmed = parts.count > 2 ? RedisMessageID(parts[2]) : nil
    }
}

/// What the server was told of a node on a connection, for one cache.
struct RedisSession: Sendable {
    let connection: Int
    /// The life of the server.
    let life: String
    /// The day on which it was told.
    let day: Int
}

/// What a node knows of its caches on the server.
final class RedisSpaces: Sendable {
    private struct Space {
        /// The last message of each life that this node has read, or whose confirmation it has.
        ///
        /// Those of other lives than the present one were not asked for yet: a confirmation can come late.
        var known: [String: RedisMessageID] = [:]
        var session: RedisSession?
        /// A Boolean value that indicates whether the server has lost what it had confirmed, and no node was told.
        var hasLostWrites = false
    }

    private let spaces = Mutex<[String: Space]>([:])

    private func change<R>(_ space: String, _ body: (inout sending Space) -> sending R) -> sending R {
        spaces.withLock { body(&$0[space, default: Space()]) }
    }

    /// Notes a message of the server's life in which a call was made.
    func note(_ id: RedisMessageID, of life: String, in space: String) {
        change(space) { $0.known[life] = max($0.known[life] ?? id, id) }
    }

    /// Returns the last message of a life.
    func last(of life: String, in space: String) -> RedisMessageID? { change(space) { $0.known[life] } }

    /// Returns a message that the server was not asked for, or else the last one.
    func known(in space: String) -> RedisPosition? {
        change(space) { space in
            let life = space.session?.life
            let found = space.known.first { $0.key != life } ?? space.known.first
            return found.map { RedisPosition($0.value, in: $0.key) }
        }
    }

    /// Returns what the server was told on a connection; nil if it was not on this day, or was not asked for a message.
    func session(on connection: Int, in space: String, on day: Int) -> RedisSession? {
        change(space) { space in
            guard let session = space.session, session.connection == connection, session.day == day,
                space.known.keys.allSatisfy({ $0 == session.life })
            else { return nil }
            return session
        }
    }

    /// Notes that the server was told of this node, and whether it has a message.
    func begin(_ session: RedisSession, in space: String, _ position: RedisPosition?, _ found: RedisFinding) {
        change(space) { space in
            // The reply of an earlier connection may come late.
            if space.session.map({ $0.connection <= session.connection }) ?? true { space.session = session }
            if found == .lost { space.hasLostWrites = true }
            guard let position, space.known[position.life] == position.id else { return }
            space.known[position.life] = nil
            if found == .there {
                space.known[session.life] = max(space.known[session.life] ?? position.id, position.id)
            }
        }
    }

    func hasLoss(in space: String) -> Bool { change(space) { $0.hasLostWrites } }

    /// Forgets what the server was told, which it does not know.
    func end(_ session: RedisSession, in space: String) {
        change(space) { if $0.session?.connection == session.connection { $0.session = nil } }
    }

    /// Returns whether the server has lost confirmed writes since the last call.
    func takeLoss(in space: String) -> Bool {
        change(space) { space in
            defer { space.hasLostWrites = false }
            return space.hasLostWrites
        }
    }
}

/// What the server says of a message that a node knows.
enum RedisFinding: String {
    /// It is there, or none was named.
    case there
    /// It is not there, and no other one was lost.
    case gone
    /// The server is back at an earlier moment, and has begun a new epoch.
    case lost
}
