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
/// A thread of its own reads the replies, and connects again by itself. No call connects, so without a server each one fails at
/// once. The first call whose reply does not come in time ends the connection, and all that wait on it.
package final class RedisLink: Sendable {
    package struct Options: Sendable {
        /// The time after which a reply is late; it is noticed half of it later at most.
        package var timeout: Duration = .milliseconds(300)
        /// The pauses between two attempts to connect, from the first one to the longest.
        package var pauses: ClosedRange<Duration> = .milliseconds(20)...(.milliseconds(500))
        /// Returns the commands that a new connection begins with, behind those of the address.
        package var greeting: @Sendable () -> [[Data]] = { [] }
        /// Called on the thread of the link when a connection is ready, and when it is lost.
        package var availabilityChanged: @Sendable (Bool) -> Void = { _ in }

        package init() {}
    }

    private let core: RedisLinkCore

    package init(_ address: RedisAddress, _ options: Options = Options()) throws {
        core = try RedisLinkCore(address, options)
        let thread = Thread { [core] in core.run() }
        thread.name = "larder.redis"
        thread.start()
    }

    deinit { core.close() }

    /// A Boolean value that indicates whether a call would be sent.
    package var isAvailable: Bool { core.isReady.load(ordering: .relaxed) }

    /// Sends a command, and returns its reply.
    ///
    /// A task that is cancelled waits all the same: the time of a reply is bounded.
    ///
    /// - Parameters:
    ///   - words: The command.
    ///   - patience: A time that is added to the timeout, for a command that waits at the server.
    /// - Throws: ``RedisFault``.
    package func call(_ words: [Data], patience: Duration = .zero) async throws -> RESPValue {
        let reply = try await withCheckedThrowingContinuation { continuation in
            core.send(RESPCommand.bytes(of: words), patience) { continuation.resume(with: $0) }
        }
        if case .error(let message) = reply { throw RedisFault.refused(message) }
        return reply
    }

    /// Ends the connection: it is not made again, and all calls fail.
    package func close() { core.close() }

    /// Ends the connection as a failure of the network would.
    package func drop() { core.drop() }
}

/// What the thread of a link and its callers share.
///
/// Safety: The socket is used by callers under the lock, and is closed by the thread after it was taken out of the state.
private final class RedisLinkCore: Sendable {
    private struct Call {
        let deadline: ContinuousClock.Instant
        let finish: @Sendable (Result<RESPValue, any Error>) -> Void
    }

    private struct State {
        /// The socket of a connection that is ready; -1 if there is none.
        var socket: Int32 = -1
        /// What is still to be sent.
        var outgoing = Data()
        /// The calls whose replies are awaited, in the order of their commands.
        var calls: ArraySlice<Call> = []
        var (isClosed, isDropped) = (false, false)
        /// A Boolean value that indicates whether the thread looks at no deadline until it is woken.
        var isAsleep = false
    }

    private let address: RedisAddress
    private let options: RedisLink.Options
    private let state = Mutex(State())
    let isReady = Atomic(false)
    /// A byte that is written to the second one wakes the thread.
    private let wake: (read: Int32, write: Int32)

    init(_ address: RedisAddress, _ options: RedisLink.Options) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw RedisFault.unavailable }
        (self.address, self.options, wake) = (address, options, (ends[0], ends[1]))
        for end in ends { RedisSocket.makeNonblocking(end) }
    }

    deinit {
        _ = Foundation.close(wake.read)
        _ = Foundation.close(wake.write)
    }

    // MARK: Callers

    func send(
        _ bytes: Data, _ patience: Duration, _ finish: @escaping @Sendable (Result<RESPValue, any Error>) -> Void
    ) {
        let call = Call(deadline: .now + options.timeout + patience, finish: finish)
        let (isSent, wakes) = state.withLock { state -> (Bool, Bool) in
            guard state.socket >= 0, !state.isDropped else { return (false, false) }
            state.calls.append(call)
            if !state.outgoing.isEmpty {
                state.outgoing += bytes
                return (true, false)
            }
            let count = RedisSocket.send(state.socket, bytes)
            if count < bytes.count { state.outgoing = Data(bytes.dropFirst(max(0, count))) }
            return (true, state.isAsleep || !state.outgoing.isEmpty)
        }
        if !isSent { return finish(.failure(RedisFault.unavailable)) }
        if wakes { wakeThread() }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeThread()
    }

    func drop() {
        state.withLock { $0.isDropped = true }
        wakeThread()
    }

    private func wakeThread() {
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
    }

    // MARK: The thread

    func run() {
        var pause = options.pauses.lowerBound
        while !state.withLock({ $0.isClosed }) {
            var parser = RESPParser()
            if let socket = connect(&parser) {
                pause = options.pauses.lowerBound
                isReady.store(true, ordering: .relaxed)
                options.availabilityChanged(true)
                serve(socket, &parser)
                let calls = state.withLock { state -> ArraySlice<Call> in
                    isReady.store(false, ordering: .relaxed)
                    defer { (state.socket, state.outgoing, state.calls) = (-1, Data(), []) }
                    return state.calls
                }
                _ = Foundation.close(socket)
                options.availabilityChanged(false)
                for call in calls { call.finish(.failure(RedisFault.lost)) }
            }
            // A server that greets and hangs up at once would otherwise be called without end.
            _ = wait(for: [], pause)
            pause = min(pause * 2, options.pauses.upperBound)
        }
    }

    /// Connects and greets; returns nil if there is no server that answers as it should.
    private func connect(_ parser: inout RESPParser) -> Int32? {
        let deadline = ContinuousClock.now + options.timeout
        guard
            let socket = RedisSocket.connect(to: address, { !self.wait(for: [($0, POLLOUT)], deadline - .now).isEmpty })
        else { return nil }
        guard greet(socket, &parser, until: deadline) else {
            _ = Foundation.close(socket)
            return nil
        }
        state.withLock { ($0.socket, $0.isDropped) = (socket, false) }
        return socket
    }

    private func greet(_ socket: Int32, _ parser: inout RESPParser, until deadline: ContinuousClock.Instant) -> Bool {
        let commands = address.greeting + options.greeting()
        let bytes = commands.reduce(Data()) { $0 + RESPCommand.bytes(of: $1) }
        var (rest, awaited) = (bytes[...], commands.count)
        while awaited > 0 {
            let left = deadline - .now
            if left <= .zero || state.withLock({ $0.isClosed }) { return false }
            let events = wait(for: [(socket, rest.isEmpty ? POLLIN : POLLIN | POLLOUT)], left)
            if events.isEmpty { continue }
            if !rest.isEmpty {
                let count = RedisSocket.send(socket, Data(rest))
                if count < 0 { return false }
                rest = rest.dropFirst(count)
            }
            guard let replies = receive(socket, &parser) else { return false }
            for reply in replies {
                if case .error = reply { return false }
                awaited -= 1
            }
            if awaited < 0 { return false }
        }
        return true
    }

    /// Sends and receives until the connection is of no use any more.
    private func serve(_ socket: Int32, _ parser: inout RESPParser) {
        var isIdle = false
        while true {
            let (isOver, sends, sleeps) = state.withLock { state in
                let isLate = state.calls.first.map { $0.deadline < .now } ?? false
                // To wake the thread for each call would cost more than the call.
                state.isAsleep = isIdle && state.calls.isEmpty
                return (state.isClosed || state.isDropped || isLate, !state.outgoing.isEmpty, state.isAsleep)
            }
            if isOver { return }
            let events = wait(
                for: [(socket, sends ? POLLIN | POLLOUT : POLLIN)], sleeps ? nil : options.timeout / 2)
            isIdle = events.isEmpty
            if isIdle { continue }
            if sends {
                let isWhole = state.withLock { state in
                    let count = RedisSocket.send(socket, state.outgoing)
                    state.outgoing =
                        count < state.outgoing.count ? Data(state.outgoing.dropFirst(max(0, count))) : Data()
                    return count >= 0
                }
                if !isWhole { return }
            }
            guard let replies = receive(socket, &parser) else { return }
            for reply in replies {
                // A reply that was not asked for cannot be told from one that was.
                guard let call = state.withLock({ $0.calls.popFirst() }) else { return }
                call.finish(.success(reply))
            }
        }
    }

    /// Returns the replies that have arrived whole; nil if the connection is lost or what arrived is no reply.
    private func receive(_ socket: Int32, _ parser: inout RESPParser) -> [RESPValue]? {
        guard let bytes = RedisSocket.receive(socket) else { return nil }
        parser.append(bytes)
        var replies: [RESPValue] = []
        do throws(RESPFault) {
            while let reply = try parser.next() { replies.append(reply) }
        } catch {
            return nil
        }
        return replies
    }

    /// Waits for sockets, for a wake-up or for a time; returns the events of the first socket, 0 for a wake-up.
    private func wait(for sockets: [(Int32, Int32)], _ time: Duration?) -> [Int16] {
        var polled = sockets.map { pollfd(fd: $0.0, events: Int16($0.1), revents: 0) }
        polled.append(pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0))
        let milliseconds = time.map { Int32(clamping: Int64(max(.zero, $0) / .milliseconds(1)) + 1) } ?? -1
        let count = poll(&polled, nfds_t(polled.count), milliseconds)
        if polled[polled.count - 1].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 64)
            while read(wake.read, &bytes, bytes.count) > 0 {}
        }
        return count <= 0 ? [] : polled.dropLast().map(\.revents).filter { $0 != 0 }
    }
}
