import Foundation
import LarderLocks
import LarderRedis
import LarderTestSupport
import Testing

/// A link to a server that answers, is silent, goes, or talks nonsense.
struct RedisLinkTests {
    private func link(_ server: FakeServer, _ change: (inout RedisLink.Options) -> Void = { _ in }) throws -> RedisLink
    {
        var options = RedisLink.Options()
        // Nothing here is to fail because the machine is slow.
        options.timeout = .seconds(120)
        change(&options)
        return try RedisLink(RedisAddress("redis://127.0.0.1:\(server.port)"), options)
    }

    private func words(_ words: String...) -> [Data] { words.map { Data($0.utf8) } }

    /// Answers each ECHO with its word, whatever the pieces in which they arrive.
    private static func echo(_ connection: FakeServer.Connection, _ handled: (Int) -> Void = { _ in }) {
        var (text, count) = ("", 0)
        while let more = connection.read() {
            text += more
            var answers = ""
            while let match = text.prefixMatch(of: /\*2\r\n\$4\r\nECHO\r\n\$\d+\r\n([^\r]*)\r\n/) {
                answers += "$\(match.1.utf8.count)\r\n\(match.1)\r\n"
                text.removeSubrange(match.range)
                count += 1
            }
            connection.write(answers)
            handled(count)
        }
    }

    @Test func `each of many calls at once gets its own reply`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            Self.echo(connection)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
                group.addTask {
                    for call in 0..<20 {
                        let word = "\(task) \(call) " + String(repeating: "x", count: call * 100)
                        let reply = try await link.call(self.words("ECHO", word))
                        #expect(reply == .bulk(Data(word.utf8)))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `a reply that comes byte by byte without end is given up`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            connection.read(until: "SLOW\r\n")
            connection.write("$60000000\r\n")
            // Until the link hangs up.
            while connection.write("x") {}
        }
        let link = try link(server) { $0.timeout = .milliseconds(50) }
        try await Waiting.until { link.isAvailable }
        await #expect(throws: RedisFault.lost) { try await link.call(words("SLOW")) }
    }

    @Test func `a refusal is thrown, and the connection stays`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            connection.read(until: "BAD\r\n")
            connection.write("-OOM command not allowed\r\n")
            Self.echo(connection)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        await #expect(throws: RedisFault.refused("OOM command not allowed")) { try await link.call(words("BAD")) }
        #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8)))
    }

    @Test(arguments: ["$5\r\nab", "", "nonsense\r\n", "+one\r\n+two\r\n+three\r\n"])
    func `a reply that is cut, missing or none ends the connection, and the next one works`(reply: String) async throws
    {
        let server = try FakeServer { connection, number in
            connection.greet()
            if number > 0 { return Self.echo(connection) }
            connection.read(until: "ONE\r\n", "TWO\r\n")
            connection.write(reply)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        let first = link.connection
        let calls = ["ONE", "TWO"].map { word in Task { await Result.of { try await link.call(words(word)) } } }
        let isAnswered = reply.hasPrefix("+one")
        for call in calls {
            switch await call.value {
            case .success(let value): #expect(isAnswered && [.simple("one"), .simple("two")].contains(value))
            case .failure(let error): #expect([.lost, .unavailable].contains(error as? RedisFault))
            }
        }
        try await Waiting.until { link.connection.map { $0 != first } ?? false }
        #expect(try await link.call(words("ECHO", "again")) == .bulk(Data("again".utf8)))
    }

    @Test func `without a server calls fail at once, and it is found when it is there`() async throws {
        let isOpen = Atomic(false)
        let server = try FakeServer { connection, _ in
            // It accepts connections like one that was stopped or that loads its data.
            connection.read(until: "PING\r\n")
            connection.write(isOpen.load(ordering: .relaxed) ? "+PONG\r\n" : "-LOADING data\r\n")
            if isOpen.load(ordering: .relaxed) { Self.echo(connection) }
        }
        let link = try link(server)
        await #expect(throws: RedisFault.unavailable) { try await link.call(words("ECHO", "a")) }
        #expect(!link.isAvailable)
        isOpen.store(true, ordering: .relaxed)
        try await Waiting.until { link.isAvailable }
        #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8)))
    }

    @Test func `a silent server ends the connection after the timeout, for all that wait`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            while connection.read() != nil {}
        }
        let link = try link(server) { $0.timeout = .milliseconds(50) }
        try await Waiting.until { link.isAvailable }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    let result = await Result.of { try await link.call(self.words("GET", "a")) }
                    guard case .failure(let error) = result else {
                        Issue.record("a silent server has answered")
                        return
                    }
                    #expect([.lost, .unavailable].contains(error as? RedisFault))
                }
            }
        }
    }

    @Test func `a reply in pieces, and a command that the socket does not take at once, are whole`() async throws {
        let text = String(repeating: "y", count: 3_000_000)
        let server = try FakeServer { connection, _ in
            connection.greet()
            let command = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3000000\r\n\(text)\r\n"
            var received = ""
            while received.utf8.count < command.utf8.count, let more = connection.read() { received += more }
            if received != command { return }
            connection.write("$\(text.utf8.count)\r\n")
            connection.write(text + "\r")
            connection.write("\n")
            Self.echo(connection)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        #expect(try await link.call(words("SET", "a", text)) == .bulk(Data(text.utf8)))
    }

    @Test func `commands are one piece, and one that waits at the server makes no other late`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            connection.read(until: "BLOCK\r\n", "GET\r\n", "NEXT\r\n")
            // The call behind it begins its time when this one is answered.
            poll(nil, 0, 400)
            connection.write("*-1\r\n:1\r\n")
            connection.write("+next\r\n")
            while connection.read() != nil {}
        }
        let link = try link(server) { $0.timeout = .milliseconds(300) }
        try await Waiting.until { link.isAvailable }
        let first = Task { try await link.call(RESPCommands([words("BLOCK"), words("GET")]), patience: .seconds(120)) }
        try await Waiting.until { link.waitingCount == 1 }
        let next = Task { try await link.call(words("NEXT")) }
        #expect(try await first.value == [.array(nil), .integer(1)])
        #expect(try await next.value == .simple("next"))
    }

    @Test func `the reason why there is no connection is known`() async throws {
        let server = try FakeServer { connection, _ in
            connection.read(until: "PING\r\n")
            connection.write("-WRONGPASS invalid username-password pair\r\n")
        }
        let refused = try link(server)
        try await Waiting.until { refused.failure?.contains("WRONGPASS") == true }
        let silent = try RedisLink(RedisAddress("redis://127.0.0.1:1"))
        try await Waiting.until { silent.failure?.contains("refused") == true }
        let unknown = try RedisLink(RedisAddress("redis://no-host.invalid"))
        try await Waiting.until { unknown.failure?.contains("no address") == true }
    }

    @Test func `a connection with something that sends back each byte is none`() async throws {
        let server = try FakeServer { connection, _ in
            while let bytes = connection.readBytes() { connection.write(bytes) }
        }
        let link = try link(server)
        try await Waiting.until { link.failure?.contains("does not answer as a server of Redis") == true }
        #expect(!link.isAvailable)
    }

    @Test func `a server that answers slowly three times in a row is left alone for a time`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            while connection.read() != nil { connection.write("$1\r\na\r\n") }
        }
        var options = RedisLink.Options()
        // Each reply is slow.
        (options.timeout, options.slowness) = (.seconds(120), .zero)
        let link = try RedisLink(RedisAddress("redis://127.0.0.1:\(server.port)"), options)
        try await Waiting.until { link.isAvailable }
        for _ in 0..<3 { #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8))) }
        try await Waiting.until { link.statistics.slowdowns == 1 }
        // It comes back.
        try await Waiting.until { link.isAvailable && link.failure == nil }
        link.close()
    }

    @Test func `more bytes than the socket will ever take are refused`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            Self.echo(connection)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        await #expect(throws: RedisFault.tooLarge) {
            try await link.call([Data("SET".utf8), Data(count: 64 << 20)])
        }
        #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8)))
    }

    @Test func `a connection begins with the password, the database and what the program adds`() async throws {
        let greetings = Mutex<[String]>([])
        let server = try FakeServer { connection, _ in
            let text = connection.read(until: "MINE\r\n") ?? ""
            greetings.withLock { $0.append(text) }
            connection.write("+OK\r\n+OK\r\n+PONG\r\n:1\r\n")
            Self.echo(connection)
        }
        var options = RedisLink.Options()
        options.timeout = .seconds(120)
        options.greeting = { _ in [[Data("MINE".utf8)]] }
        let link = try RedisLink(RedisAddress("redis://:secret@127.0.0.1:\(server.port)/2"), options)
        try await Waiting.until { link.isAvailable }
        let text = greetings.withLock { $0.joined() }
        #expect(
            text
                == "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nMINE\r\n"
        )
        #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8)))
    }

    @Test func `a link that is closed or released answers all that wait, and connects no more`() async throws {
        let connections = Atomic(0)
        let hasBoth = Atomic(false)
        let server = try FakeServer { connection, _ in
            connections.add(1, ordering: .relaxed)
            connection.greet()
            connection.read(until: "ONE\r\n", "TWO\r\n")
            hasBoth.store(true, ordering: .relaxed)
            while connection.read() != nil {}
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        let calls = ["ONE", "TWO"].map { word in Task { await Result.of { try await link.call(words(word)) } } }
        try await Waiting.until { hasBoth.load(ordering: .relaxed) }
        link.close()
        for call in calls {
            guard case .failure(let error) = await call.value else {
                Issue.record("a closed link has answered")
                continue
            }
            #expect(error as? RedisFault == .lost)
        }
        try await Waiting.until { !link.isAvailable }
        await #expect(throws: RedisFault.unavailable) { try await link.call(words("GET", "a")) }
        #expect(connections.load(ordering: .relaxed) == 1)
    }

    @Test func `a dropped connection is made again`() async throws {
        let server = try FakeServer { connection, _ in
            connection.greet()
            Self.echo(connection)
        }
        let link = try link(server)
        try await Waiting.until { link.isAvailable }
        let first = try #require(link.connection)
        link.drop(first)
        try await Waiting.until { link.connection == first + 1 }
        // One that is late does not concern the next connection.
        link.drop(first)
        await #expect(throws: RedisFault.unavailable) { try await link.call(words("ECHO", "b"), on: first) }
        #expect(try await link.call(words("ECHO", "b"), on: first + 1) == .bulk(Data("b".utf8)))
        server.cut()
        try await Waiting.until { link.connection == first + 2 }
        #expect(try await link.call(words("ECHO", "a")) == .bulk(Data("a".utf8)))
    }
}

extension Result where Failure == any Error {
    static func of(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
