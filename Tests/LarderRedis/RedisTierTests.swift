import Foundation
import Larder
import LarderLocks
import LarderRedis
import LarderTestSupport
import LarderTesting
import Testing

/// Nodes on a real server that is killed, stands still, loses its data or says no.
@Suite(.enabled(if: RealServer.isInstalled, "redis-server is not installed"))
struct RedisTierTests {
    private let server: RealServer

    init() throws { server = try RealServer() }

    private func nodes(_ count: Int, timeout: Duration = .seconds(120)) async throws -> [RedisNode] {
        var nodes: [RedisNode] = []
        for _ in 0..<count { nodes.append(try await RedisNode(server.url, timeout: timeout)) }
        return nodes
    }

    @Test func `three nodes load once, and a removal on one is one on all`() async throws {
        let nodes = try await nodes(3)
        let loads = Counter()
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<300 {
                group.addTask {
                    try await nodes[number % 3].shared.value(forKey: "a") { _ in
                        loads.increment()
                        try await Waiting.until { nodes.reduce(0) { $0 + $1.cache.waitingCallers } == 300 }
                        return "once"
                    }
                }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(loads.value == 1 && values == ["once"])
        try await nodes[0].shared.setValue(
            "new", forKey: "a", maxAge: .hours(1), extendedData: Data([1]), tags: ["red"])
        try await Waiting.until { nodes[1].cache["a"] == nil && nodes[2].cache["a"] == nil }
        for node in nodes { #expect(try await node.get("a") == "new") }
        let copy = try await nodes[2].cache.entry(forKey: "a")
        #expect(copy?.extendedData == Data([1]) && copy?.metadata.tags == ["red"])
        #expect(copy?.metadata.expiresAt.map { $0 < nodes[2].store.clock.now + 3601 } == true)
        try await nodes[0].shared.setValue("newer", forKey: "a", tags: ["cafe\u{301}"])
        try await nodes[1].shared.removeAll(tagged: "caf\u{e9}")
        for node in nodes { try await Waiting.until { node.cache["a"] == nil } }
        for node in nodes { #expect(try await node.get("a") == nil) }
    }

    @Test func `a node that is killed while it loads gives way to another one that waits`() async throws {
        let node = try await RedisNode(server.url)
        let other = try TemporaryStore()
        // It waits for lines of a process.
        try await onThread {
            let loading = try ChildProcess("larder-test-node", [other.url.path, server.url])
            #expect(loading.line() == "loading")
            let load = Task { try await node.shared.value(forKey: "a") { _ in "loaded" } }
            try Waiting.until {
                let reply = try waiting { try await server.run("EXISTS", RedisNode.name("w:ta")) }
                return reply == .integer(1)
            }
            loading.kill()
            #expect(try waiting { try await load.value } == "loaded")
        }
        #expect(try await server.value("a") == "loaded")
    }

    @Test func `a server that is killed and comes back empty is told what was removed`() async throws {
        let nodes = try await nodes(2)
        for key in ["a", "b", "c"] {
            #expect(try await nodes[0].shared.value(forKey: key) { _ in "old" } == "old")
            #expect(try await nodes[1].get(key) == "old")
        }
        server.kill()
        try await Waiting.until { nodes.allSatisfy { !$0.tier.isAvailable && $0.shared.health != .current } }
        #expect(nodes[0].tier.failure != nil)
        try await nodes[0].shared.removeValue(forKey: "a")
        try await nodes[0].shared.setValue("here", forKey: "b")
        #expect(try await nodes[0].get("b") == "here")
        #expect(try await nodes[1].get("c") == "old")
        #expect(try await nodes[1].shared.value(forKey: "d") { _ in "loaded" } == "loaded")
        #expect(nodes[0].shared.statistics.pendingRemovals == 2)
        try server.start()
        for node in nodes { try await node.settle() }
        for node in nodes { for key in ["a", "b", "c"] { #expect(try await node.get(key) == nil) } }
        try await nodes[0].shared.setValue("new", forKey: "a")
        #expect(try await nodes[1].get("a") == "new")
    }

    @Test func `a server that stands still costs the calls that wait, and then none`() async throws {
        let nodes = try await nodes(2, timeout: .milliseconds(200))
        try await Waiting.until { nodes.allSatisfy { $0.tier.isConnected } }
        try server.stop()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let value = try await nodes[0].shared.value(forKey: "\(number)") { "own \($0)" }
                    #expect(value == "own \(number)")
                }
            }
            try await group.waitForAll()
        }
        try await nodes[0].shared.removeValue(forKey: "1")
        try await nodes[0].shared.setValue("set", forKey: "2")
        #expect(try await nodes[0].get("2") == "set")
        try server.goOn()
        for node in nodes { try await node.settle() }
        for node in nodes { for key in ["1", "2"] { #expect(try await node.get(key) == nil) } }
    }

    /// The number of scripts that the server has run.
    private func scriptCount() async throws -> Int {
        guard case .bulk(let text?) = try await server.run("INFO", "commandstats") else { return 0 }
        let calls = String(decoding: text, as: UTF8.self).firstMatch(of: /cmdstat_evalsha:calls=(\d+)/)
        return calls.flatMap { Int($0.1) } ?? 0
    }

    @Test func `a command of a dead connection that comes late changes nothing`() async throws {
        let held = Mutex<[(connection: Int, bytes: [UInt8])]>([])
        let isHolding = Atomic(false)
        let late = Atomic(-1)
        let proxy = try Proxy(to: server.port)
        let (a, b) = (try await RedisNode(proxy.url, timeout: .milliseconds(300)), try await RedisNode(server.url))
        func set(_ text: String) async throws {
            // On a slow machine a call can be late that nothing holds up.
            while try await server.value("a") != text {
                try await a.settle()
                try await a.shared.setValue(text, forKey: "a")
            }
        }
        try await set("one")
        let isReleased = Atomic(false)
        proxy.change { bytes, toServer, connection in
            let isWrite = String(decoding: bytes, as: UTF8.self).contains("EVALSHA")
            if toServer, isWrite, late.load(ordering: .relaxed) < 0, isHolding.load(ordering: .relaxed) {
                late.store(connection, ordering: .relaxed)
                held.withLock { $0.append((connection, bytes)) }
                do { try Waiting.until { isReleased.load(ordering: .relaxed) } } catch {}
            }
            return bytes
        }
        isHolding.store(true, ordering: .relaxed)
        try await a.shared.setValue("two", forKey: "a")
        #expect(held.withLock { $0.count } == 1)
        try await a.settle()
        try await set("three")
        let count = try await scriptCount()
        isReleased.store(true, ordering: .relaxed)
        while try await scriptCount() == count { await Task.yield() }
        #expect(try await server.value("a") == "three")
        #expect(try await b.get("a") == "three")
        #expect(try await a.get("a") == "three")
    }

    @Test func `lost data, lost messages and lost scripts are noticed`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("old", forKey: "a")
        #expect(try await nodes[1].get("a") == "old")
        try await server.run("FLUSHALL")
        try await Waiting.until { nodes.allSatisfy { $0.cache["a"] == nil } }
        try await nodes[0].shared.setValue("new", forKey: "a")
        for node in nodes { try await node.settle() }
        try await nodes[0].shared.setValue("new", forKey: "a")
        #expect(try await nodes[1].get("a") == "new")
        try await server.run("SCRIPT", "FLUSH")
        try await nodes[0].shared.setValue("newer", forKey: "a")
        for node in nodes { try await node.settle() }
        try await nodes[0].shared.setValue("newest", forKey: "a")
        for node in nodes { #expect(try await node.get("a") == "newest") }
        // A node that was away for longer than the messages are kept.
        await nodes[1].shared.close()
        try await nodes[0].shared.removeValue(forKey: "a")
        try await server.run("XTRIM", RedisNode.name("stream"), "MAXLEN", "0")
        let events = nodes[1].manager.events
        let again = try await nodes[1].cache.shared(through: nodes[1].tier, options: RedisNode.options)
        #expect(nodes[1].cache["a"] == nil)
        #expect(await events.first { $0.kind == .sharedMessagesLost } != nil)
        await again.close()
    }

    @Test func `what another program has put under the names is removed or reported, and never served`() async throws {
        let nodes = try await nodes(2)
        for part in ["e:ta", "l:tb", "meta", "stream"] {
            try await server.run("DEL", RedisNode.name(part))
            try await server.run("SET", RedisNode.name(part), "nonsense")
        }
        try await server.run("HSET", RedisNode.name("e:tc"), "s", "nonsense", "p", "nonsense")
        for key in ["a", "b", "c"] {
            for node in nodes { #expect(try await node.shared.value(forKey: key) { "own \($0)" } == "own \(key)") }
        }
        try await nodes[0].shared.removeAll()
        for node in nodes { try await node.settle() }
        try await Waiting.until { nodes.allSatisfy { $0.cache["a"] == nil } }
        try await nodes[0].shared.setValue("new", forKey: "a")
        #expect(try await nodes[1].get("a") == "new")
        // A stamp of this epoch, and a payload and tags that are none.
        for (tags, payload) in [("", "nonsense"), ("9:red", ""), ("x", "")] {
            try await server.run("HSET", RedisNode.name("e:ta"), "p", payload, "g", tags)
            try await server.run("XADD", RedisNode.name("stream"), "*", "n", "x", "k", "later", "v", "")
            try await Waiting.until { nodes.allSatisfy { $0.cache["a"] == nil } }
            for node in nodes {
                try await Waiting.until { node.tier.isConnected }
                #expect(try await node.shared.value(forKey: "a") { _ in "own" } == "own")
            }
        }
    }

    @Test func `a server is reached over a socket of the machine`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("redis.sock").path
        let server = try RealServer(options: ["--save", "", "--unixsocket", path])
        let tier = RedisTier(url: "unix://:secret@\(path)?db=0", prefix: "test", timeout: .seconds(120))
        try await Waiting.until { tier.isConnected }
        let key = Data("key".utf8)
        #expect(try await tier.fetch(key, in: SharedSpace("texts"), lease: nil) == .missing)
        let none = RedisTier(url: "unix:///no/such.sock", prefix: "test")
        try await Waiting.until { none.failure?.contains("No such file") == true }
        withExtendedLifetime(server) {}
    }

    @Test func `an address is asked for at each connection, and so is a password`() async throws {
        let other = try RealServer()
        let (port, password) = (Locked(server.port), Locked("wrong"))
        let asked = Counter()
        let tier = RedisTier(
            prefix: "test",
            address: {
                asked.increment()
                return "redis://127.0.0.1:\(port.value)"
            }, credentials: { RedisCredentials(password: password.value) }, timeout: .seconds(120))
        try await Waiting.until { tier.failure?.contains("WRONGPASS") == true }
        password.change { $0 = "secret" }
        try await Waiting.until { tier.isConnected }
        let before = asked.value
        port.change { $0 = other.port }
        server.kill()
        try await Waiting.until { tier.isConnected && asked.value > before + 1 }
        let key = Data("key".utf8)
        #expect(try await tier.fetch(key, in: SharedSpace("texts"), lease: nil) == .missing)
        #expect(try await other.run("EXISTS", "test:spaces") == .integer(1))
    }

    @Test func `a source of addresses that fails says why, and an address that is none is refused`() async throws {
        struct Unknown: Error, CustomStringConvertible { let description = "the service knows no server" }
        let failing = RedisTier(prefix: "test", address: { throw Unknown() })
        try await Waiting.until { failing.failure?.contains("the service knows no server") == true }
        let wrong = RedisTier(prefix: "test", address: { "http://host" })
        try await Waiting.until { wrong.failure?.contains("begins with \"http\"") == true }
        let failure = #expect(throws: RedisTier.Failure.self) {
            try RedisTier(validating: "http://host", prefix: "test")
        }
        #expect(failure?.description.contains("begins with \"http\"") == true)
        #expect(throws: Never.self) { try RedisTier(validating: server.url, prefix: "test").close() }
    }

    /// The number of times that the server has run a command.
    private func calls(of command: String) async throws -> Int {
        guard case .bulk(let data?) = try await server.run("INFO", "commandstats") else { return 0 }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
        let line = lines.first { $0.hasPrefix("cmdstat_\(command):calls=") }
        return line.flatMap { Int($0.split(separator: "=")[1].prefix { $0.isNumber }) } ?? 0
    }

    @Test func `a hit needs no script unless a removal can concern it, and many keys are one piece`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("plain", forKey: "a")
        try await nodes[0].shared.setValue("tagged", forKey: "b", tags: ["red"])
        for number in 0..<100 { try await nodes[0].shared.setValue("\(number)", forKey: "key \(number)") }
        try await nodes[1].shared.catchUp()
        try await nodes[1].settle()
        func expect(_ key: String, _ value: String?, scripts: Int) async throws {
            try await nodes[1].manager.removeAll()
            let before = try await calls(of: "evalsha")
            #expect(try await nodes[1].get(key) == value)
            #expect(try await calls(of: "evalsha") == before + scripts)
        }
        try await expect("a", "plain", scripts: 0)
        try await expect("b", "tagged", scripts: 0)
        let (scripts, reads) = (try await calls(of: "evalsha"), try await calls(of: "hmget"))
        let keys = (0..<100).map { "key \($0)" }
        let found = try await nodes[1].shared.values(forKeys: keys) { _ in [:] }
        #expect(found == Dictionary(uniqueKeysWithValues: (0..<100).map { ("key \($0)", "\($0)") }))
        #expect(try await calls(of: "evalsha") == scripts)
        #expect(try await calls(of: "hmget") == reads + 101)
        // Of another tag, of this one, and of all.
        try await nodes[0].shared.removeAll(tagged: "blue")
        try await expect("a", "plain", scripts: 0)
        try await expect("b", "tagged", scripts: 1)
        try await nodes[0].shared.removeAll(tagged: "red")
        try await expect("a", "plain", scripts: 0)
        try await expect("b", nil, scripts: 1)
        try await nodes[0].shared.removeAll()
        try await expect("a", nil, scripts: 1)
    }

    @Test func `an entry ends on each node when it ends on the server`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("short", forKey: "a", maxAge: .seconds(3600))
        let now = nodes[1].store.clock.now
        var end: Date?
        // The message of the write may come behind the read, and remove the copy.
        while end == nil {
            #expect(try await nodes[1].get("a") == "short")
            end = try await nodes[1].cache.entry(forKey: "a")?.metadata.expiresAt
        }
        #expect(end.map { $0 > now + 3000 && $0 <= now + 3600 } == true)
    }

    @Test func `a server that refuses writes costs no call`() async throws {
        let nodes = try await nodes(2)
        try await nodes[0].shared.setValue("old", forKey: "a")
        #expect(try await nodes[1].get("a") == "old")
        try await server.run("CONFIG", "SET", "maxmemory", "1")
        try await nodes[0].shared.setValue("new", forKey: "a")
        #expect(nodes[0].shared.statistics.failures == 1)
        // To remove takes no memory, and to get a lease does.
        for node in nodes { try await node.settle() }
        #expect(try await nodes[0].shared.value(forKey: "b") { _ in "own" } == "own")
        #expect(nodes[0].shared.statistics.failures == 2)
        try await Waiting.until { nodes.allSatisfy { $0.cache["a"] == nil } }
        try await server.run("CONFIG", "SET", "maxmemory", "0")
        #expect(try await server.value("a") == nil)
        try await server.run("REPLICAOF", "127.0.0.1", "1")
        try await nodes[0].shared.setValue("newer", forKey: "a")
        #expect(try await nodes[0].shared.value(forKey: "c") { _ in "own" } == "own")
        try await server.run("REPLICAOF", "NO", "ONE")
        for node in nodes { try await node.settle() }
        try await nodes[0].shared.setValue("newest", forKey: "a")
        #expect(try await nodes[1].get("a") == "newest")
    }

    @Test(arguments: RealServer.binaries)
    func `a full server takes removals of every kind, and what it refuses is said once`(binary: String?) async throws {
        let server = try RealServer(binary, options: ["--save", "", "--maxmemory-policy", "noeviction"])
        let nodes = [try await RedisNode(server.url), try await RedisNode(server.url)]
        for key in ["a", "b", "c"] {
            try await nodes[0].shared.setValue("old", forKey: key, tags: [key])
            #expect(try await nodes[1].get(key) == "old")
        }
        let events = nodes[0].manager.events
        try await server.run("CONFIG", "SET", "maxmemory", "1")
        try await nodes[0].shared.removeAll(tagged: "a")
        try await nodes[0].shared.removeValue(forKey: "b")
        #expect(nodes[0].shared.statistics.pendingRemovals == 0 && nodes[0].shared.health == .current)
        try await Waiting.until { nodes[1].cache["a"] == nil && nodes[1].cache["b"] == nil }
        for node in nodes { for key in ["a", "b"] { #expect(try await node.get(key) == nil) } }
        try await nodes[0].shared.removeAll()
        try await Waiting.until { nodes[1].cache["c"] == nil }
        for key in ["a", "b"] { try await nodes[0].shared.setValue("new", forKey: key) }
        guard case .refused(let reason) = nodes[0].shared.health else {
            Issue.record("\(nodes[0].shared.health)")
            return
        }
        #expect(reason.contains("OOM") && nodes[0].tier.failure?.contains("OOM") == true)
        // What it refused to store it was told to remove.
        try await nodes[0].settle()
        #expect(nodes[0].shared.health == .refused(reason))
        try await server.run("CONFIG", "SET", "maxmemory", "0")
        try await nodes[0].settle()
        try await nodes[0].shared.setValue("newer", forKey: "a")
        #expect(nodes[0].shared.health == .current && nodes[0].tier.failure == nil)
        try await nodes[0].manager.close()
        var kinds: [CacheEvent.Kind] = []
        for await event in events { kinds.append(event.kind) }
        #expect(kinds.filter { $0 == .sharedTierRefuses }.count >= 1)
    }

    @Test func `a server that has lost its scripts costs no connection`() async throws {
        let node = try await nodes(1)[0]
        try await node.shared.setValue("old", forKey: "a")
        let clients = try await server.run("CLIENT", "LIST")
        try await server.run("SCRIPT", "FLUSH")
        try await node.shared.setValue("new", forKey: "a")
        #expect(try await server.value("a") == "new" && node.shared.statistics.failures == 0)
        let later = try await server.run("CLIENT", "LIST")
        func ids(_ list: RESPValue) -> Set<String> {
            guard case .bulk(let text?) = list else { return [] }
            let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
            return Set(lines.filter { !$0.contains("cmd=client") }.map { String($0.prefix { $0 != " " }) })
        }
        #expect(ids(clients).isSubset(of: ids(later)) && ids(clients).count == 2)
    }

    @Test func `what nodes of an earlier version have left is deleted after four weeks`() async throws {
        let day = Int(Date().timeIntervalSince1970 / 86_400)
        for (name, last) in [("texts/0/cbor", day - 30), ("texts/2/cbor", day - 3)] {
            try await server.run("HSET", "test:spaces", name, "\(last)")
            for part in ["meta", "nodes"] { try await server.run("HSET", "test:{\(name)}:\(part)", "e", "1") }
            try await server.run("XADD", "test:{\(name)}:stream", "*", "n", "x", "k", "h", "v", "")
        }
        let node = try await nodes(1)[0]
        try await node.shared.setValue("one", forKey: "a")
        for part in ["meta", "nodes", "stream"] {
            while try await server.run("EXISTS", "test:{texts/0/cbor}:\(part)") != .integer(0) { await Task.yield() }
            #expect(try await server.run("TTL", "test:{texts/2/cbor}:\(part)") == .integer(-1))
            #expect(try await server.run("TTL", RedisNode.name(part)) == .integer(-1))
        }
    }

    @Test func `what no node uses any more is pruned when the program asks for it, and nothing else`() async throws {
        let day = Int(Date().timeIntervalSince1970 / 86_400)
        for (name, last) in [("texts/[0]*/cbor", day - 9), ("texts/2/cbor", day - 3)] {
            try await server.run("HSET", "test:spaces", name, "\(last)")
            for part in ["meta", "nodes", "e:ta", "l:tb"] {
                try await server.run("HSET", "test:{\(name)}:\(part)", "e", "1")
            }
            try await server.run("XADD", "test:{\(name)}:stream", "*", "n", "x", "k", "h", "v", "")
        }
        // Names that its pattern must not match.
        let others = ["test:{texts/0x/cbor}:meta", "test:{texts/[0]*/cbor}", "other:{texts/[0]*/cbor}:meta"]
        for name in others { try await server.run("SET", name, "1") }
        let node = try await nodes(1)[0]
        try await node.shared.setValue("one", forKey: "a")
        #expect(try await node.tier.prune(unusedFor: 5) == 1)
        for part in ["meta", "nodes", "e:ta", "l:tb", "stream"] {
            #expect(try await server.run("EXISTS", "test:{texts/[0]*/cbor}:\(part)") == .integer(0))
            #expect(try await server.run("EXISTS", "test:{texts/2/cbor}:\(part)") == .integer(1))
        }
        for name in others { #expect(try await server.run("EXISTS", name) == .integer(1)) }
        #expect(try await node.tier.prune() == 1)
        #expect(try await node.tier.prune(unusedFor: 0) == 0)
        #expect(try await server.value("a") == "one")
        #expect(node.shared.health == .current)
    }

    @Test func `entries whose keys begin so are removed on all nodes, and no others`() async throws {
        let nodes = try await nodes(2)
        for key in ["user:1", "user:2", "users", "other"] {
            try await nodes[0].shared.setValue("old", forKey: key, tags: key == "user:2" ? ["red"] : [])
            #expect(try await nodes[1].get(key) == "old")
        }
        #expect(try await nodes[0].shared.removeAll(prefix: "user:") == .everywhere)
        try await Waiting.until { nodes[1].cache["user:1"] == nil && nodes[1].cache["user:2"] == nil }
        for node in nodes {
            for key in ["user:1", "user:2"] { #expect(try await node.get(key) == nil) }
            for key in ["users", "other"] { #expect(try await node.get(key) == "old") }
        }
        #expect(try await server.value("user:1") == nil)
        #expect(try await server.value("users") == "old")
        // So many lengths are too many to look for: what was there before counts as removed.
        for length in 1..<60 { try await nodes[0].shared.removeAll(prefix: String(repeating: "x", count: length)) }
        #expect(try await server.value("users") == nil)
        try await nodes[0].shared.setValue("new", forKey: "user:1")
        #expect(try await nodes[1].get("user:1") == "new")
    }

    @Test func `a server with the settings of the example is one for nodes`() async throws {
        let file = SourceFolder.url.appendingPathComponent("Examples/SharedTier/redis.conf")
        let server = try RealServer(configuration: file, options: [])
        let node = try await RedisNode(server.url)
        #expect(try await node.shared.value(forKey: "a") { _ in "loaded" } == "loaded")
        #expect(try await server.value("a") == "loaded")
        let policy = try await server.run("CONFIG", "GET", "maxmemory-policy")
        #expect(policy == .array([.bulk(Data("maxmemory-policy".utf8)), .bulk(Data("volatile-lru".utf8))]))
    }

    @Test func `a server in cluster mode is refused with a sentence`() async throws {
        let server = try RealServer(options: ["--save", "", "--cluster-enabled", "yes"])
        let tier = RedisTier(url: server.url, prefix: "test", timeout: .seconds(120))
        try await Waiting.until { tier.failure?.contains("part of a cluster") == true }
        #expect(!tier.isAvailable)
    }

    @Test func `more calls than may wait are refused at once, and counted`() async throws {
        let tier = RedisTier(url: server.url, prefix: "test", timeout: .seconds(120), callLimit: 10)
        try await Waiting.until { tier.isConnected }
        let space = SharedSpace("texts")
        #expect(try await tier.fetch(Data("key".utf8), in: space, lease: nil) == .missing)
        try server.stop()
        let results = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<30 {
                group.addTask {
                    do {
                        _ = try await tier.fetch(Data("key".utf8), in: space, lease: nil)
                        return nil
                    } catch {
                        return "\(error)"
                    }
                }
            }
            var results: [String?] = []
            for await result in group {
                results.append(result)
                // Those within the limit wait for the server.
                if results.count == 20 { do { try server.goOn() } catch {} }
            }
            return results
        }
        #expect(results.filter { $0?.contains("raise the callLimit") == true }.count == 20)
        #expect(results.filter { $0 == nil }.count == 10)
        #expect(tier.statistics.overLimit == 20 && tier.statistics.lost == 0)
    }

    @Test func `what was sent and refused is counted, with the times of calls`() async throws {
        let nodes = try await nodes(2)
        let before = nodes[0].tier.statistics
        #expect(before.connections == 2 && before.calls > 0 && before.refusals.isEmpty)
        try await nodes[0].shared.setValue(String(repeating: "x", count: 10_000), forKey: "a")
        #expect(try await nodes[0].tier.fetch(Data("ta".utf8), in: SharedSpace("texts/1/cbor"), lease: nil) != .missing)
        let after = nodes[0].tier.statistics
        #expect(after.sentBytes > before.sentBytes + 10_000 && after.receivedBytes > before.receivedBytes + 10_000)
        #expect(after.latency.count > before.latency.count && after.latency.bound(ofShare: 1) != nil)
        try await server.run("CONFIG", "SET", "maxmemory", "1")
        try await nodes[0].shared.setValue("two", forKey: "b")
        #expect(nodes[0].tier.statistics.refusals["OOM"] ?? 0 > 0)
        server.kill()
        try await Waiting.until { !nodes[1].tier.isAvailable }
        await #expect(throws: RedisTier.Failure.self) {
            try await nodes[1].tier.fetch(Data("ta".utf8), in: SharedSpace("texts/1/cbor"), lease: nil)
        }
        #expect(nodes[1].tier.statistics.unavailable > 0)
    }

    @Test func `the rights that the guide names are enough`() async throws {
        let line =
            "ACL SETUSER app on >word ~test:* resetchannels -@all +get +set +del +hget +hset +hdel +hgetall +hmget +hlen"
            + " +persist +pexpire +pttl +xadd +xread +xrange +xrevrange +info +time +evalsha +script|load +ping +role +client|id"
            + " +client|list +client|setname +client|unblock"
        try await server.run(words: line.split(separator: " ").map(String.init))
        let url = "redis://app:word@127.0.0.1:\(server.port)"
        let (one, other) = (try await RedisNode(url), try await RedisNode(url))
        #expect(try await one.shared.value(forKey: "a") { _ in "loaded" } == "loaded")
        try await one.shared.setValue("set", forKey: "b", tags: ["red"])
        #expect(try await other.get("a") == "loaded")
        #expect(try await other.get("b") == "set")
        try await one.shared.removeValue(forKey: "a")
        try await one.shared.removeAll(tagged: "red")
        try await Waiting.until { other.cache["a"] == nil && other.cache["b"] == nil }
        try await one.shared.removeAll()
        #expect(one.shared.health == .current && one.tier.failure == nil && one.shared.statistics.failures == 0)
        #expect(try await server.run("ACL", "LOG") == .array([]))
        let guide = SourceFolder.url.appendingPathComponent(
            "Sources/Larder/Documentation.docc/Guides/SharedServer.md")
        let rights = line.split(separator: " ").filter { $0.hasPrefix("+") }
        let text = try String(contentsOf: guide, encoding: .utf8)
        #expect(rights.allSatisfy { text.contains("\($0) ") || text.contains("\($0)\n") })
    }

    @Test func `an address that is none, and a password that is wrong or missing, are said and cost no call`()
        async throws
    {
        for (url, message) in [
            ("http://127.0.0.1", "begins with"), ("redis://:wrong@127.0.0.1:\(server.port)", "WRONGPASS"),
            ("redis://127.0.0.1:\(server.port)", "NOAUTH"),
        ] {
            var options = RedisNode.options
            options.catchUpLimit = .zero
            let node = try await RedisNode(url, options: options)
            try await Waiting.until { node.tier.failure?.contains(message) == true }
            try await node.shared.setValue("own", forKey: "a")
            #expect(try await node.get("a") == "own")
            #expect(!node.tier.isAvailable && node.shared.health != .current)
        }
    }

    @Test(arguments: 0..<3)
    func `bytes that are cut, repeated and garbled on their way end in a miss at the worst`(seed: UInt64) async throws {
        let random = Mutex(Seeded(seed))
        let isBad = Atomic(true)
        let proxy = try Proxy(to: server.port) { bytes, toServer, _ in
            if toServer || !isBad.load(ordering: .relaxed) { return bytes }
            return random.withLock { random in
                switch Int.random(in: 0..<12, using: &random) {
                case 0: return nil
                case 1: return Array(bytes.prefix(.random(in: 0...bytes.count, using: &random)))
                case 2: return bytes + bytes
                case 3:
                    var bytes = bytes
                    bytes[.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                    return bytes
                default: return bytes
                }
            }
        }
        var options = RedisNode.options
        (options.catchUpLimit, options.leaseAge, options.loadWaitLimit) = (.zero, .milliseconds(200), .seconds(1))
        let node = try await RedisNode(proxy.url, timeout: .milliseconds(100), options: options)
        for number in 0..<60 {
            let key = "\(number % 4)"
            switch number % 3 {
            case 0: try await node.shared.setValue("v\(key)", forKey: key)
            case 1: try await node.shared.removeValue(forKey: key)
            default: #expect(try await node.shared.value(forKey: key) { "v\($0)" } == "v\(key)")
            }
        }
        isBad.store(false, ordering: .relaxed)
        proxy.cut()
        try await node.settle()
        try await node.shared.setValue("end", forKey: "end")
        #expect(try await node.get("end") == "end")
    }
}

/// The folder of the project.
enum SourceFolder {
    static let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
}
