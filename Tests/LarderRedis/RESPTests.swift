import Foundation
import LarderRedis
import Testing

/// Replies that arrive in any pieces, and bytes that are none.
struct RESPTests {
    private func values(_ text: String, pieces: Int = .max) throws(RESPFault) -> [RESPValue] {
        var (parser, values, rest) = (RESPParser(), [RESPValue](), Array(text.utf8)[...])
        while !rest.isEmpty {
            parser.append(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            while let value = try parser.next() { values.append(value) }
        }
        return values
    }

    private static let replies: [(String, RESPValue)] = [
        ("+OK\r\n", .simple("OK")), ("+x\r\n", .simple("x")),
        ("-ERR no\r\n", .error("ERR no")), (":-42\r\n", .integer(-42)), (":9223372036854775807\r\n", .integer(.max)),
        ("$5\r\na\r\nbc\r\n", .bulk(Data("a\r\nbc".utf8))), ("$0\r\n\r\n", .bulk(Data())), ("$-1\r\n", .bulk(nil)),
        ("*-1\r\n", .array(nil)), ("*0\r\n", .array([])),
        (
            "*2\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n+b\r\n",
            .array([.integer(1), .array([.bulk(Data("a".utf8)), .array([.simple("b")])])])
        ),
        ("*3\r\n*0\r\n*-1\r\n-x\r\n", .array([.array([]), .array(nil), .error("x")])),
    ]

    @Test(arguments: replies.indices)
    func `a reply is read in whatever pieces it arrives`(index: Int) throws {
        let (text, value) = Self.replies[index]
        for pieces in 1...(text.utf8.count + 1) {
            #expect(try values(text + text + ":7\r\n", pieces: pieces) == [value, value, .integer(7)], "\(pieces)")
            #expect(try values(String(text.dropLast()), pieces: pieces) == [])
        }
    }

    @Test(arguments: [
        "x\r\n", "\r\n", "\n", ":\r\n", ":one\r\n", ":1\n", ":9223372036854775808\r\n", "$-2\r\n", "$1.5\r\n",
        "$3\r\nabcd\r\n",
        "$536870912\r\n", "*-2\r\n", "*99999999999\r\n", "+no return\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
        String(repeating: "*1\r\n", count: 9), "*2\r\n:1\r\n?\r\n",
    ])
    func `what is no reply is a fault, and takes no memory that it announces`(text: String) {
        for pieces in [1, 7, .max] { #expect(throws: RESPFault.self) { try values(text, pieces: pieces) } }
    }

    @Test func `a line without an end is a fault`() {
        #expect(throws: RESPFault.self) { try values("+" + String(repeating: "x", count: 70_000), pieces: 1_000) }
    }

    @Test func `a large reply in many pieces is read as one`() throws {
        let text = "*20000\r\n" + String(repeating: "$3\r\nabc\r\n", count: 20_000)
        #expect(try values(text, pieces: 100) == [.array(.init(repeating: .bulk(Data("abc".utf8)), count: 20_000))])
        let large = "$4000000\r\n" + String(repeating: "y", count: 4_000_000) + "\r\n"
        #expect(try values(large, pieces: 65_536) == [.bulk(Data(repeating: UInt8(ascii: "y"), count: 4_000_000))])
    }

    @Test func `a command is an array of its words`() {
        let commands = RESPCommands([[Data("SET".utf8), Data("k\r\n".utf8), Data()]])
        #expect(commands.count == 1)
        #expect(commands.bytes == Array("*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n".utf8))
    }

    // MARK: Addresses

    @Test func `an address has a host, and may have a port, a database, a user and a password`() throws {
        let plain = try RedisAddress("redis://cache.local")
        #expect(plain.host == "cache.local" && plain.port == 6379 && plain.database == 0 && plain.password == nil)
        #expect(plain.greeting == [[Data("PING".utf8)]])
        let full = try RedisAddress("redis://app:p%40ss%2Fword@[::1]:7000/3")
        #expect(full.host == "::1" && full.port == 7000 && full.database == 3)
        #expect(full.user == "app" && full.password == "p@ss/word")
        let words = full.greeting.map { $0.map { String(decoding: $0, as: UTF8.self) } }
        #expect(words == [["AUTH", "app", "p@ss/word"], ["SELECT", "3"], ["PING"]])
        let secret = try RedisAddress("valkey://:secret@host").greeting[0]
        #expect(secret == [Data("AUTH".utf8), Data("secret".utf8)])
        let secure = try RedisAddress("rediss://host")
        #expect(secure.isSecure && secure.port == 6379 && !plain.isSecure)
        let socket = try RedisAddress("unix://app:secret@/run/redis.sock?db=2")
        #expect(socket.path == "/run/redis.sock" && socket.database == 2 && socket.greeting.count == 3)
    }

    @Test(arguments: [
        ("host:6379", "begins with"), ("http://host", "begins with \"http\""),
        ("redis:///0", "no host"), ("redis://host/first", "the path \"first\""),
        ("redis://app@host", "without a password"), ("redis://app:@host", "without a password"),
        ("redis://host:70000", "from 1 to 65535"), ("redis://host?timeout=1", "options"),
        ("", "no URL"), ("unix://host/run/redis.sock", "has no path"), ("unix:redis.sock", "has no path"),
        ("unix:///" + String(repeating: "x", count: 100), "at most 100 bytes"),
        ("unix:///run/redis.sock?db=-1", "more than a database"),
        ("unix:///run/redis.sock?x=1", "more than a database"),
    ])
    func `what is no address is refused with a sentence`(text: String, message: String) {
        let refusal = #expect(throws: RedisAddress.Refusal.self) { try RedisAddress(text) }
        #expect(refusal?.message.contains(message) == true, "\(String(describing: refusal))")
    }
}

struct RedisLatencyTests {
    @Test func `a time is counted at the first bound that is not below it`() {
        var latency = RedisLatency()
        #expect(latency.bound(ofShare: 0.5) == nil)
        for (time, place) in [
            (Duration.zero, 0), (.microseconds(16), 0), (.microseconds(17), 1), (.microseconds(32), 1),
            (.microseconds(33), 2), (.milliseconds(1), 6), (.seconds(8), 19), (.seconds(9), 20), (.seconds(900), 20),
        ] {
            let before = latency.counts
            latency.note(time)
            #expect(latency.counts[place] == before[place] + 1, "\(time)")
        }
        #expect(latency.count == 9)
        #expect(latency.bound(ofShare: 0.2) == .microseconds(16))
        #expect(latency.bound(ofShare: 0.4) == .microseconds(32))
        #expect(latency.bound(ofShare: 0.99) == nil)
    }
}
