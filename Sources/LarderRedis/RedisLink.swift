package import Foundation
internal import LarderLocks

/// Why a call of a server has no reply.
package enum RedisFault: Error, Hashable {
    /// There is no connection. Nothing was sent.
    case unavailable
    /// The connection was lost, or the reply has not come in time. The server may have done what was asked, or do it later.
    case lost
    /// So many calls wait for the server that this one was not sent.
    case overLimit
    /// So many bytes wait to be sent that this call was not.
    case tooLarge
    /// The server has refused the command.
    case refused(String)
}

/// A connection to a server: many tasks call at once, and their commands are sent behind each other.
///
/// If few replies are awaited a call sends its command itself. Else the thread sends those of many calls together, once it has taken a reply.
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
        /// The number of calls that may wait for replies when one that has a bound is made.
        package var callLimit = Int.max
        /// The time after which a reply is slow; a connection with three such replies in a row is ended, and a longer pause follows.
        package var slowness: Duration?
        /// How connections are encrypted whose address asks for that.
        package var security: RedisSecurity?
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

    package convenience init(_ address: RedisAddress, _ options: Options = Options()) throws {
        try self.init({ address }, options)
    }

    /// - Parameter source: Asked for the address of each connection, on the thread of the link.
    package init(_ source: @escaping @Sendable () throws -> RedisAddress, _ options: Options = Options()) throws {
        var options = options
        options.timeout = min(max(options.timeout, .milliseconds(1)), .seconds(3600))
        core = try RedisLinkCore(source, options)
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

    /// Counts a call that was not made, because there is no connection.
    func countUnavailable() { core.state.withLock { $0.statistics.unavailable += 1 } }

    /// What was sent and received.
    package var statistics: RedisStatistics { core.state.withLock { $0.statistics } }

    /// Sends a command, and returns its reply.
    ///
    /// - Throws: ``RedisFault``.
    package func call(_ words: [Data], on connection: Int? = nil) async throws -> RESPValue {
        let reply = try await call(RESPCommands([words]), on: connection)[0]
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
    ///   - isBounded: A Boolean value that indicates whether it is refused if too many calls wait.
    /// - Throws: ``RedisFault``.
    package func call(
        _ commands: RESPCommands, on connection: Int? = nil, patience: Duration = .zero, isBounded: Bool = false
    ) async throws -> [RESPValue] {
        try await withCheckedThrowingContinuation { continuation in
            core.send(commands, on: connection, patience, isBounded) { continuation.resume(with: $0) }
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
        let start = ContinuousClock.now
        /// A Boolean value that indicates whether the server may let it wait.
        let isPatient: Bool
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
        /// What the connection is encrypted with.
        var cipher: (any RedisCipher)?
        /// What is still to be sent; the bytes in front of `sentCount` were.
        var (outgoing, sentCount) = ([UInt8](), 0)
        /// The calls whose replies are awaited, in the order of their commands.
        var calls: ArraySlice<Call> = []
        /// The moment since which the first of them is the server's work.
        var waitingSince = ContinuousClock.now
        /// The number of slow replies in a row.
        var slowCount = 0
        var statistics = RedisStatistics()
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
            waitingSince = .now
            deadline = waitingSince + first.time
            lastDeadline = deadline + first.time * 3
        }

        /// Notes a call whose last reply has come.
        mutating func noteDone(_ call: Call, at now: ContinuousClock.Instant) {
            for case .error(let message) in call.replies { statistics.note(refusal: message) }
            if !call.isPatient { statistics.latency.note(now - call.start) }
        }

        /// Appends bytes to what is sent, and returns whether that was done.
        mutating func append(_ bytes: [UInt8]) -> Bool {
            statistics.sentBytes += bytes.count
            var bytes = bytes
            if let cipher {
                guard cipher.seal(bytes) else { return false }
                bytes = cipher.takeOutgoing()
            }
            if outgoing.isEmpty { outgoing = bytes } else { outgoing += bytes }
            return true
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
    /// The number of awaited replies above which commands are sent together.
    private static let togetherCount = 8
    /// The slow replies in a row that end a connection, and the pause after it.
    private static let (slowLimit, slowPause) = (3, Duration.seconds(1))

    let source: @Sendable () throws -> RedisAddress
    let options: RedisLink.Options
    let state = Mutex(State())
    /// The number of the connection that is ready; 0 if there is none.
    let ready = Atomic(0)
    /// A byte that is written to the second one wakes the thread.
    let wake: (read: Int32, write: Int32)

    init(_ source: @escaping @Sendable () throws -> RedisAddress, _ options: RedisLink.Options) throws {
        guard let wake = RedisSocket.pipe() else { throw RedisFault.unavailable }
        (self.source, self.options, self.wake) = (source, options, wake)
    }

    deinit {
        _ = Foundation.close(wake.read)
        _ = Foundation.close(wake.write)
    }

    var failure: String? { state.withLock { $0.failure } }

    func send(
        _ commands: RESPCommands, on connection: Int?, _ patience: Duration, _ isBounded: Bool,
        _ finish: @escaping @Sendable (Result<[RESPValue], any Error>) -> Void
    ) {
        let call = Call(
            time: options.timeout + patience, isPatient: patience > .zero, count: commands.count, finish: finish)
        let (fault, wakes) = state.withLock { state -> (RedisFault?, Bool) in
            let isFree = state.outgoing.isEmpty
            guard state.socket >= 0, !state.isDropped, connection ?? state.connection == state.connection else {
                state.statistics.unavailable += 1
                return (.unavailable, false)
            }
            let isOver = state.outgoing.count + commands.bytes.count > Self.outgoingLimit
            if isOver || isBounded && state.calls.count >= options.callLimit {
                state.statistics.overLimit += 1
                return (isOver ? .tooLarge : .overLimit, false)
            }
            guard state.append(commands.bytes) else {
                state.isDropped = true
                state.statistics.unavailable += 1
                return (.unavailable, true)
            }
            state.statistics.calls += 1
            state.calls.append(call)
            if state.calls.count == 1 { state.beginWaiting() }
            // The thread sends what waits as soon as it has one of the replies.
            if !isFree || state.calls.count > Self.togetherCount { return (nil, false) }
            // If the connection is lost, the thread finds that too.
            _ = state.send()
            return (nil, state.isAsleep || !state.outgoing.isEmpty)
        }
        if wakes { wakeThread() }
        if let fault { finish(.failure(fault)) }
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

/// The thread of a link.
extension RedisLinkCore {
    func run() {
        var (pause, input) = (options.pauses.lowerBound, Input())
        while !state.withLock({ $0.isClosed }) {
            input = Input()
            var isOfUse = false
            do {
                let (socket, connection) = try connect(&input)
                ready.store(connection, ordering: .relaxed)
                let failure = serve(socket, &input, &isOfUse)
                let calls = state.withLock { state -> ArraySlice<Call> in
                    ready.store(0, ordering: .relaxed)
                    defer {
                        (state.socket, state.outgoing, state.sentCount, state.calls) = (-1, [], 0, [])
                        (state.cipher, state.failure, state.slowCount) = (nil, failure.message, 0)
                        state.statistics.lost += state.calls.count
                        if failure.isSlow { state.statistics.slowdowns += 1 }
                    }
                    return state.calls
                }
                _ = Foundation.close(socket)
                for call in calls { call.finish(.failure(RedisFault.lost)) }
                // A server that greets and hangs up at once would otherwise be called without end.
                if isOfUse { pause = options.pauses.lowerBound }
                if failure.isSlow { pause = max(pause, Self.slowPause) }
            } catch {
                state.withLock { $0.failure = error.message }
            }
            // Many nodes that lost one server do not come back at one moment.
            _ = wait(for: nil, until: .now + pause * Double.random(in: 0.5...1))
            pause = min(pause * 2, options.pauses.upperBound)
        }
    }

    /// Why there is no connection.
    struct Failure: Error {
        /// What many failures have in common.
        static let ended = Failure(message: "The connection was ended.")
        static let late = Failure(message: "The server has not answered in time.")

        let message: String
        var isSlow = false

        /// What it says of a connection that was not used before.
        func explained(isSecure: Bool) -> Failure {
            switch (message, isSecure) {
            case (Self.ended.message, true):
                Failure(message: "The server has ended it. It may not accept the certificate of this node.")
            case (Self.ended.message, false):
                Failure(message: "The server has ended it. If it asks for TLS, use rediss://host:6379.")
            case (Self.late.message, true):
                Failure(message: "The server has not answered in time. It may not speak TLS at this port.")
            default: self
            }
        }
    }

    /// The replies that arrive.
    struct Input {
        var parser = RESPParser()
        var cipher: (any RedisCipher)?
        /// Bytes as they have arrived from the other side.
        private var sealed: [UInt8] = []

        /// Returns the replies that have arrived whole.
        mutating func receive(_ socket: Int32) throws(Failure) -> (count: Int, replies: [RESPValue]) {
            let received =
                try cipher.map { cipher throws(Failure) in try receive(socket, cipher) }
                ?? parser.receive(Self.readCount) { RedisSocket.receive(socket, $0) }
            guard let count = received else { throw Failure.ended }
            var replies: [RESPValue] = []
            do throws(RESPFault) {
                while let reply = try parser.next() { replies.append(reply) }
            } catch {
                throw Failure(message: "The server does not speak the protocol: \(error.message).")
            }
            return (count, replies)
        }

        /// Returns the number of bytes that have arrived, and gives the parser what they say; nil if the connection is lost.
        private mutating func receive(_ socket: Int32, _ cipher: any RedisCipher) throws(Failure) -> Int? {
            if sealed.isEmpty { sealed = [UInt8](repeating: 0, count: Self.readCount) }
            let received = sealed.withUnsafeMutableBytes { bytes in
                let count = RedisSocket.receive(socket, bytes)
                cipher.take(UnsafeRawBufferPointer(rebasing: bytes[..<(count ?? 0)]))
                return count
            }
            // What has arrived before a connection was ended says why.
            var (isEmpty, failure) = (false, RedisSecurity.Failure?.none)
            while !isEmpty {
                _ = parser.receive(Self.readCount) { bytes in
                    do throws(RedisSecurity.Failure) {
                        let count = try cipher.read(into: bytes)
                        isEmpty = count == 0
                        return count
                    } catch {
                        (isEmpty, failure) = (true, error)
                        return nil
                    }
                }
            }
            if let failure { throw Failure(message: failure.message) }
            return received
        }

        private static let readCount = 65_536
    }

    /// Connects and greets.
    private func connect(_ input: inout Input) throws(Failure) -> (socket: Int32, connection: Int) {
        let address: RedisAddress
        do {
            address = try source()
        } catch {
            throw Failure(message: "The address of the server is not known: \(error)")
        }
        let connection = state.withLock { state in
            state.connection += 1
            state.isDropped = false
            return state.connection
        }
        let found = RedisSocket.connect(to: address) { socket in
            let deadline = ContinuousClock.now + self.options.timeout
            while deadline > .now, !self.state.withLock({ $0.isClosed }) {
                if self.wait(for: (socket, POLLOUT), until: deadline) != 0 { return true }
            }
            return false
        }
        guard let socket = found.socket else { throw Failure(message: found.failure) }
        do {
            try secure(socket, of: address, &input)
            try greet(socket, as: address, connection, &input)
        } catch {
            _ = Foundation.close(socket)
            throw error.explained(isSecure: input.cipher != nil)
        }
        state.withLock { state in
            (state.socket, state.cipher, state.failure) = (socket, input.cipher, nil)
            state.statistics.connections += 1
        }
        return (socket, connection)
    }

    /// Encrypts a connection whose address asks for that.
    private func secure(_ socket: Int32, of address: RedisAddress, _ input: inout Input) throws(Failure) {
        if let refusal = address.refusal(with: options.security) { throw Failure(message: refusal) }
        guard address.isSecure, let security = options.security else { return }
        let cipher: any RedisCipher
        do throws(RedisSecurity.Failure) { cipher = try security.cipher(address.host) } catch {
            throw Failure(message: error.message)
        }
        input.cipher = cipher
        let deadline = ContinuousClock.now + options.timeout
        while true {
            _ = try input.receive(socket)
            try send(cipher.takeOutgoing(), to: socket, until: deadline)
            if cipher.isReady { return }
            try wait(for: socket, POLLIN, until: deadline)
        }
    }

    /// Sends bytes in front of a greeting.
    private func send(_ bytes: [UInt8], to socket: Int32, until deadline: ContinuousClock.Instant) throws(Failure) {
        var sent = 0
        while sent < bytes.count {
            let count = RedisSocket.send(socket, bytes[sent...])
            if count < 0 { throw Failure.ended }
            sent += count
            if sent < bytes.count { try wait(for: socket, POLLOUT, until: deadline) }
        }
    }

    /// Waits until a socket can be used; throws if that takes too long, or the link was closed.
    private func wait(
        for socket: Int32, _ events: Int32, until deadline: ContinuousClock.Instant
    ) throws(Failure) {
        while wait(for: (socket, events), until: deadline) == 0 {
            if deadline <= .now { throw Failure.late }
            if state.withLock({ $0.isClosed }) { throw Failure(message: "It was closed.") }
        }
    }

    private func greet(
        _ socket: Int32, as address: RedisAddress, _ connection: Int, _ input: inout Input
    ) throws(Failure) {
        let (first, own) = (address.greeting, options.greeting(connection))
        var bytes = RESPCommands(first + own).bytes
        if let cipher = input.cipher { bytes = cipher.seal(bytes) ? cipher.takeOutgoing() : [] }
        let deadline = ContinuousClock.now + options.timeout
        // It is much less than the buffers of a connection take.
        try send(bytes, to: socket, until: deadline)
        var replies: [RESPValue] = []
        while replies.count < first.count + own.count {
            try wait(for: socket, POLLIN, until: deadline)
            replies += try input.receive(socket).replies
            for case .error(let message) in replies.prefix(first.count) {
                throw Failure(message: "The server says: \(message)")
            }
            // A socket can be connected with itself if nothing listens, and then gets back what it sends.
            let isServer = replies.prefix(first.count).allSatisfy { if case .simple = $0 { true } else { false } }
            if !isServer { throw Failure(message: "It does not answer as a server of Redis does.") }
        }
        if replies.count > first.count + own.count { throw Failure(message: "There were more replies than commands.") }
        if let reason = options.greeted(connection, Array(replies.dropFirst(first.count))) {
            throw Failure(message: reason)
        }
    }

    /// Sends and receives until the connection is of no use any more, and returns why.
    private func serve(_ socket: Int32, _ input: inout Input, _ isOfUse: inout Bool) -> Failure {
        var isIdle = false
        do throws(Failure) {
            while true {
                let (isOver, isLost, sends, sleeps) = state.withLock { state in
                    // To wake the thread for each call would cost more than the call.
                    state.isAsleep = isIdle && state.calls.isEmpty
                    let isLost = !state.outgoing.isEmpty && !state.send()
                    return (state.isClosed || state.isDropped, isLost, !state.outgoing.isEmpty, state.isAsleep)
                }
                if isOver { return Failure(message: "The connection was ended on this side.") }
                if isLost { return Failure.ended }
                let events = wait(
                    for: (socket, sends ? POLLIN | POLLOUT : POLLIN),
                    until: .now + (sleeps ? options.idle : options.timeout / 2))
                isIdle = events == 0
                // A network forgets a connection without traffic.
                if sleeps, isIdle { ping() }
                let isSending = sends && !isIdle
                let (count, replies) = isIdle ? (0, []) : try input.receive(socket)
                if !replies.isEmpty {
                    try finish(replies, of: count)
                    // One that answers slowly from the first reply on is left alone for longer and longer.
                    isOfUse = isOfUse || state.withLock { $0.slowCount == 0 }
                }
                let isLate = state.withLock { state in
                    if replies.isEmpty { state.statistics.receivedBytes += count }
                    // The two sides of an encrypted connection also say something to each other.
                    if let cipher = input.cipher { state.outgoing += cipher.takeOutgoing() }
                    // A large command takes its time to be sent.
                    if count > 0 || isSending {
                        state.deadline = max(state.deadline, .now + options.timeout)
                        // Its transfer is not what makes a server slow.
                        state.waitingSince = .now
                    }
                    let isLate = state.deadline < .now || state.outgoing.isEmpty && state.lastDeadline < .now
                    return !state.calls.isEmpty && isLate
                }
                if isLate { return Failure.late }
            }
        } catch {
            return error
        }
    }

    private func ping() {
        send(RESPCommands([[Data("PING".utf8)]]), on: nil, .zero, false) { _ in }
    }

    /// Gives replies to the first calls.
    ///
    /// - Parameter count: The bytes that have arrived with them, which are counted before a caller goes on.
    private func finish(_ replies: [RESPValue], of count: Int) throws(Failure) {
        let (areAwaited, isSlow, done) = state.withLock { state -> (Bool, Bool, [Call]) in
            var done: [Call] = []
            let now = ContinuousClock.now
            state.statistics.receivedBytes += count
            // Replies that come together were late for one reason.
            let isSlow = options.slowness.map { now - state.waitingSince > $0 } ?? false
            state.slowCount = isSlow && state.calls.first?.isPatient == false ? state.slowCount + 1 : 0
            for reply in replies {
                guard let first = state.calls.indices.first else { return (false, false, done) }
                state.calls[first].replies.append(reply)
                if state.calls[first].replies.count < state.calls[first].count { continue }
                state.noteDone(state.calls[first], at: now)
                done.append(state.calls[first])
                // A slice keeps what was removed from it.
                state.calls[first].replies = []
                state.calls.removeFirst()
            }
            if state.calls.isEmpty { state.calls = [] }
            // A piece of many commands makes progress with each reply.
            state.beginWaiting()
            return (true, state.slowCount >= Self.slowLimit, done)
        }
        for call in done { call.finish(.success(call.replies)) }
        // A reply that was not asked for cannot be told from one that was.
        if !areAwaited { throw Failure(message: "There were more replies than commands.") }
        if isSlow { throw Failure(message: "The server answers slowly.", isSlow: true) }
    }

    /// Waits for a socket, for a wake-up or for a moment; returns the events of the socket.
    private func wait(for socket: (Int32, Int32)?, until moment: ContinuousClock.Instant?) -> Int16 {
        var polled = [
            pollfd(fd: socket?.0 ?? -1, events: Int16(socket?.1 ?? 0), revents: 0),
            pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0),
        ]
        let time = moment.map { Int32(clamping: Int64(max(.zero, $0 - .now) / .milliseconds(1)) + 1) } ?? -1
        if poll(&polled, nfds_t(polled.count), time) <= 0 { return 0 }
        if polled[1].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 64)
            while read(wake.read, &bytes, bytes.count) > 0 {}
        }
        return polled[0].revents
    }
}
