package import Foundation
internal import LarderLocks

/// Why a call of a server has no reply.
package enum RedisFault: Error, Hashable {
    /// There is no connection. Nothing was sent.
    case unavailable
    /// The connection was lost, or the reply has not come in time. The server may have done what was asked, or do it later.
    case lost
    /// The server has refused the command.
    case refused(String)
}

/// A connection to a server: many tasks call at once, and their commands are sent behind each other.
///
/// A thread of its own reads the replies, and connects again. No call connects, so without a server each one fails at
/// once. The first call whose reply does not come in time ends the connection, and all that wait on it.
package final class RedisLink: Sendable {
    package struct Options: Sendable {
        /// The time without a byte of a reply after which it is late; that is noticed half of it later at most.
        package var timeout: Duration = .milliseconds(300)
        /// The pauses between two attempts to connect, from the first one to the longest.
        package var pauses: ClosedRange<Duration> = .milliseconds(20)...(.seconds(10))
        /// The time without a call after which the server is asked for a sign of life.
        package var idle: Duration = .seconds(30)
        /// Returns the commands that the connection with a number begins with, behind those of the address.
        package var greeting: @Sendable (_ connection: Int) -> [[Data]] = { _ in [] }
        /// Gets the replies of a greeting before its connection is used, errors too, and returns why it is of no use.
        package var greeted: @Sendable (_ connection: Int, [RESPValue]) -> String? = { _, replies in
            for case .error(let message) in replies { return "The server says: \(message)" }
            return nil
        }

        package init() {}
    }

    private let core: RedisLinkCore

    package init(_ address: RedisAddress, _ options: Options = Options()) throws {
        var options = options
        options.timeout = min(max(options.timeout, .milliseconds(1)), .seconds(3600))
        core = try RedisLinkCore(address, options)
        let thread = Thread { [core] in core.run() }
        thread.name = "larder.redis"
        thread.start()
    }

    deinit { core.close() }

    /// The number of the connection, which is higher for each that is made; nil if there is none.
    package var connection: Int? {
        let number = core.ready.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// A Boolean value that indicates whether a call would be sent.
    package var isAvailable: Bool { connection != nil }

    /// The number of calls that wait for replies.
    package var waitingCount: Int { core.state.withLock { $0.calls.count } }

    /// Why there is no connection.
    package var failure: String? { core.failure }

    /// Sends a command, and returns its reply.
    ///
    /// - Throws: ``RedisFault``.
    package func call(_ words: [Data], on connection: Int? = nil) async throws -> RESPValue {
        let reply = try await call(all: [words], on: connection)[0]
        if case .error(let message) = reply { throw RedisFault.refused(message) }
        return reply
    }

    /// Sends commands as one piece, and returns their replies, errors too.
    ///
    /// A task that is cancelled waits all the same: the time of a reply is bounded.
    ///
    /// - Parameters:
    ///   - commands: The commands.
    ///   - connection: The connection on which they may be sent; nil for any.
    ///   - patience: A time that is added to the timeout, for a command that waits at the server.
    /// - Throws: ``RedisFault``.
    package func call(
        all commands: [[Data]], on connection: Int? = nil, patience: Duration = .zero
    ) async throws -> [RESPValue] {
        var bytes: [UInt8] = []
        for words in commands { RESPCommand.append(words, to: &bytes) }
        return try await withCheckedThrowingContinuation { continuation in
            core.send(bytes, commands.count, on: connection, patience) { continuation.resume(with: $0) }
        }
    }

    /// Ends the connection: it is not made again, and all calls fail.
    package func close() { core.close() }

    /// Ends a connection as a failure of the network would, unless another one is there.
    package func drop(_ connection: Int) { core.drop(connection) }
}

/// What the thread of a link and its callers share.
///
/// Safety: The socket is used by callers under the lock, and is closed by the thread after it was taken out of the state.
final class RedisLinkCore: Sendable {
    /// A call that waits for its replies.
    struct Call {
        let time: Duration
        /// The number of replies, and those that have come.
        let count: Int
        var replies: [RESPValue] = []
        let finish: @Sendable (Result<[RESPValue], any Error>) -> Void
    }

    struct State {
        /// The socket of a connection that is ready; -1 if there is none.
        var socket: Int32 = -1
        /// The number of the last connection that was tried.
        var connection = 0
        /// What is still to be sent; the bytes in front of `sentCount` were.
        var (outgoing, sentCount) = ([UInt8](), 0)
        /// The calls whose replies are awaited, in the order of their commands.
        var calls: ArraySlice<Call> = []
        /// The moment at which the first of them is late.
        var deadline = ContinuousClock.now
        /// The moment at which it is late whatever has arrived.
        var lastDeadline = ContinuousClock.now
        var (isClosed, isDropped) = (false, false)
        /// A Boolean value that indicates whether the thread looks at no deadline until it is woken.
        var isAsleep = false
        var failure: String?

        /// Begins the time of the call that is the first one now.
        mutating func beginWaiting() {
            guard let first = calls.first else { return }
            deadline = .now + first.time
            lastDeadline = deadline + first.time * 3
        }

        /// Sends what the socket takes, and returns false if the connection is lost.
        mutating func send() -> Bool {
            let count = RedisSocket.send(socket, outgoing[sentCount...])
            if count < 0 { return false }
            sentCount += count
            if sentCount == outgoing.count {
                (outgoing, sentCount) = ([], 0)
            } else if sentCount > outgoing.count / 2 {
                outgoing.removeFirst(sentCount)
                sentCount = 0
            }
            return true
        }
    }

    /// The bytes that wait to be sent, of which more are refused.
    private static let outgoingLimit = 64 << 20

    let address: RedisAddress
    let options: RedisLink.Options
    let state = Mutex(State())
    /// The number of the connection that is ready; 0 if there is none.
    let ready = Atomic(0)
    /// A byte that is written to the second one wakes the thread.
    let wake: (read: Int32, write: Int32)

    init(_ address: RedisAddress, _ options: RedisLink.Options) throws {
        guard let wake = RedisSocket.pipe() else { throw RedisFault.unavailable }
        (self.address, self.options, self.wake) = (address, options, wake)
    }

    deinit {
        _ = Foundation.close(wake.read)
        _ = Foundation.close(wake.write)
    }

    var failure: String? { state.withLock { $0.failure } }

    func send(
        _ bytes: [UInt8], _ count: Int, on connection: Int?, _ patience: Duration,
        _ finish: @escaping @Sendable (Result<[RESPValue], any Error>) -> Void
    ) {
        let call = Call(time: options.timeout + patience, count: count, finish: finish)
        let (isSent, wakes) = state.withLock { state -> (Bool, Bool) in
            guard state.socket >= 0, !state.isDropped, connection ?? state.connection == state.connection,
                state.outgoing.count + bytes.count <= Self.outgoingLimit
            else { return (false, false) }
            state.calls.append(call)
            if state.calls.count == 1 { state.beginWaiting() }
            let isFree = state.outgoing.isEmpty
            state.outgoing += bytes
            if !isFree { return (true, false) }
            // If the connection is lost, the thread finds that too.
            _ = state.send()
            return (true, state.isAsleep || !state.outgoing.isEmpty)
        }
        if !isSent { return finish(.failure(RedisFault.unavailable)) }
        if wakes { wakeThread() }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeThread()
    }

    func drop(_ connection: Int) {
        state.withLock { if $0.connection == connection { $0.isDropped = true } }
        wakeThread()
    }

    private func wakeThread() {
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
    }
}
