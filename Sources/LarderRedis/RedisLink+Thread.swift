internal import Foundation
internal import LarderLocks

/// The thread of a link.
extension RedisLinkCore {
    func run() {
        var (pause, input) = (options.pauses.lowerBound, Input())
        while !state.withLock({ $0.isClosed }) {
            input.parser = RESPParser()
            var isOfUse = false
            do {
                let (socket, connection) = try connect(&input)
                ready.store(connection, ordering: .relaxed)
                let failure = serve(socket, &input, &isOfUse)
                let calls = state.withLock { state -> ArraySlice<Call> in
                    ready.store(0, ordering: .relaxed)
                    defer {
                        (state.socket, state.outgoing, state.sentCount, state.calls) = (-1, [], 0, [])
                        state.failure = failure
                    }
                    return state.calls
                }
                _ = Foundation.close(socket)
                for call in calls { call.finish(.failure(RedisFault.lost)) }
            } catch {
                state.withLock { $0.failure = error.message }
            }
            // A server that greets and hangs up at once would otherwise be called without end.
            pause = isOfUse ? options.pauses.lowerBound : pause
            // Many nodes that lost one server do not come back at one moment.
            _ = wait(for: nil, until: .now + pause * Double.random(in: 0.5...1))
            pause = min(pause * 2, options.pauses.upperBound)
        }
    }

    /// Why there is no connection.
    struct Failure: Error {
        let message: String
    }

    /// The replies that arrive.
    struct Input {
        var parser = RESPParser()
        private var bytes = [UInt8](repeating: 0, count: 65_536)

        /// Returns the replies that have arrived whole.
        mutating func receive(_ socket: Int32) throws(Failure) -> (hasBytes: Bool, replies: [RESPValue]) {
            guard let count = RedisSocket.receive(socket, &bytes) else { throw Failure(message: "It was ended.") }
            parser.append(bytes.prefix(count))
            var replies: [RESPValue] = []
            do throws(RESPFault) {
                while let reply = try parser.next() { replies.append(reply) }
            } catch {
                throw Failure(message: "The server does not speak the protocol: \(error.message).")
            }
            return (count > 0, replies)
        }
    }

    /// Connects and greets.
    private func connect(_ input: inout Input) throws(Failure) -> (socket: Int32, connection: Int) {
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
            try greet(socket, connection, &input)
        } catch {
            _ = Foundation.close(socket)
            throw error
        }
        state.withLock { ($0.socket, $0.failure) = (socket, nil) }
        return (socket, connection)
    }

    private func greet(_ socket: Int32, _ connection: Int, _ input: inout Input) throws(Failure) {
        let (first, own) = (address.greeting, options.greeting(connection))
        var (bytes, sent, replies) = ([UInt8](), 0, [RESPValue]())
        for words in first + own { RESPCommand.append(words, to: &bytes) }
        let deadline = ContinuousClock.now + options.timeout
        while replies.count < first.count + own.count {
            if deadline <= .now { throw Failure(message: "The server has not answered in time.") }
            if state.withLock({ $0.isClosed }) { throw Failure(message: "It was closed.") }
            let isSending = sent < bytes.count
            if wait(for: (socket, isSending ? POLLIN | POLLOUT : POLLIN), until: deadline) == 0 { continue }
            if isSending {
                let count = RedisSocket.send(socket, bytes[sent...])
                if count < 0 { throw Failure(message: "It was ended.") }
                sent += count
            }
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
    private func serve(_ socket: Int32, _ input: inout Input, _ isOfUse: inout Bool) -> String {
        var isIdle = false
        do throws(Failure) {
            while true {
                let (isOver, sends, sleeps) = state.withLock { state in
                    // To wake the thread for each call would cost more than the call.
                    state.isAsleep = isIdle && state.calls.isEmpty
                    return (state.isClosed || state.isDropped, !state.outgoing.isEmpty, state.isAsleep)
                }
                if isOver { return "It was ended on this side." }
                let events = wait(
                    for: (socket, sends ? POLLIN | POLLOUT : POLLIN),
                    until: .now + (sleeps ? options.idle : options.timeout / 2))
                isIdle = events == 0
                // A network forgets a connection without traffic.
                if sleeps, isIdle { ping() }
                let isSending = sends && !isIdle
                if isSending, !state.withLock({ $0.send() }) { return "It was ended." }
                let (hasBytes, replies) = isIdle ? (false, []) : try input.receive(socket)
                for reply in replies { try finish(reply) }
                isOfUse = isOfUse || !replies.isEmpty
                let isLate = state.withLock { state in
                    // A large command takes its time to be sent.
                    if hasBytes || isSending { state.deadline = max(state.deadline, .now + options.timeout) }
                    let isLate = state.deadline < .now || state.outgoing.isEmpty && state.lastDeadline < .now
                    return !state.calls.isEmpty && isLate
                }
                if isLate { return "The server has not answered in time." }
            }
        } catch {
            return error.message
        }
    }

    private func ping() {
        var bytes: [UInt8] = []
        RESPCommand.append([Data("PING".utf8)], to: &bytes)
        send(bytes, 1, on: nil, .zero) { _ in }
    }

    /// Gives a reply to the first call.
    private func finish(_ reply: RESPValue) throws(Failure) {
        let (isAwaited, done) = state.withLock { state -> (Bool, Call?) in
            guard let first = state.calls.indices.first else { return (false, nil) }
            state.calls[first].replies.append(reply)
            if state.calls[first].replies.count < state.calls[first].count { return (true, nil) }
            let done = state.calls[first]
            // A slice keeps what was removed from it.
            state.calls[first].replies = []
            state.calls.removeFirst()
            if state.calls.isEmpty { state.calls = [] }
            state.beginWaiting()
            return (true, done)
        }
        // A reply that was not asked for cannot be told from one that was.
        if !isAwaited { throw Failure(message: "There were more replies than commands.") }
        done?.finish(.success(done?.replies ?? []))
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
