import Foundation
import Larder
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Suspended managers: nothing of theirs holds a lock on a file.
struct SuspensionTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ manager: CacheManager, inlineLimit: Int = 100) throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(inlineLimit: inlineLimit).steady)
    }

    /// Returns the locks that this process has on files of the store, as the system lists them.
    private func locks() throws -> [String] {
        #if os(Linux)
        let inodes = try place.folder.names.compactMap { name -> String? in
            let attributes = try FileManager.default.attributesOfItem(atPath: place.folder.real(name).path)
            return (attributes[.systemFileNumber] as? NSNumber).map { ":\($0) " }
        }
        let own = " \(ProcessInfo.processInfo.processIdentifier) "
        let all = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").map(String.init)
        return all.filter { line in line.contains(own) && inodes.contains { line.contains($0) } }
        #else
        return []
        #endif
    }

    /// Returns the files of the store that this process has open.
    private func openFiles() throws -> [String] {
        try OpenFiles.paths(where: { $0.hasPrefix(place.folder.realURL.path + "/store.sqlite") })
    }

    private static let large = String(repeating: "x", count: 1000)

    @Test func `a suspended manager holds no lock, serves hits, and goes on after it is resumed`() throws {
        let manager = try place.manager { $0.log = { _ in } }
        let cache = try cache(manager)
        cache[1] = "one"
        cache[2] = Self.large
        #expect(cache[1] == "one")
        #if os(Linux)
        #expect(try !locks().isEmpty && !openFiles().isEmpty)
        #endif
        for _ in 0..<2 {
            try manager.suspend()
            #expect(try locks() == [] && openFiles() == [])
        }
        #expect(cache[1] == "one" && cache.memory[2] == Self.large)
        #expect(cache[3] == nil)
        expectError(.suspended) { try cache.value(forKey: 3) }
        expectError(.suspended) { try cache.setValue("x", forKey: 1) }
        expectError(.suspended) { try cache.setValue(Self.large, forKey: 1) }
        expectError(.suspended) { try cache.count }
        expectError(.suspended) { try cache.removeAll() }
        expectError(.suspended) { try cache.snapshot() }
        expectError(.suspended) { try manager.cacheInfo() }
        expectError(.suspended) { try manager.verify() }
        expectError(.suspended) { try manager.maintain() }
        expectError(.suspended) { try manager.transaction { _ in } }
        expectError(.suspended) { try cache.value(forKey: 3) { _ in "loaded" } }
        #expect(try cache.explain(1).kind == .suspended)
        #expect(try locks() == [] && openFiles() == [])
        // Another process may change everything in the meantime.
        let other = try place.manager()
        let others = try self.cache(other)
        #expect(others[1] == "one")
        others[1] = "changed"
        try other.close()
        manager.resume()
        #expect(try cache.count == 2)
        #expect(cache[1] == "changed" && cache[2] == Self.large && cache[3] == nil)
        cache[3] = "three"
        #expect(try cache.count == 3)
        try manager.suspend()
        #expect(try locks() == [])
        try manager.close()
        expectError(.closed) { try manager.suspend() }
        #expect(try self.cache(place.manager()).snapshot() == [1: "changed", 2: Self.large, 3: "three"])
    }

    @Test func `of the failures of subscripts while a manager is suspended the first is reported`() throws {
        let messages = Told<LogMessage>()
        let manager = try place.manager { $0.log = { messages.add($0) } }
        let cache = try cache(manager)
        for round in 1...2 {
            try manager.suspend()
            for key in 0..<5 { cache[key] = "x" }
            #expect(messages.all.count == round)
            manager.resume()
        }
        #expect(cache.statistics.failures == 10)
    }

    @Test func `what runs is waited for, whatever it is, and nothing is lost`() async throws {
        let managers = try (0..<2).map { _ in try place.manager { $0.log = { _ in } } }
        let caches = try managers.map { try self.cache($0) }
        let (isDone, written) = (Locked(false), Locked<[Int: String]>([:]))
        let threads = (0..<6).map { lane in
            SideThread {
                var number = lane
                while !isDone.value {
                    number += 6
                    let cache = caches[lane % 2]
                    do throws(CacheError) {
                        switch lane {
                        case 0, 1:
                            let value = number % 12 < 6 ? "\(number)" : Self.large + "\(number)"
                            try cache.setValue(value, forKey: number)
                            written.change { $0[number] = value }
                        case 2: _ = try cache.snapshot()
                        case 3: for key in 0..<20 { _ = try cache.disk.value(forKey: key) }
                        case 4: try cache.manager.maintain()
                        default: _ = try cache.manager.cacheInfo()
                        }
                    } catch {
                        #expect(error.code == .suspended, "\(error)")
                    }
                }
            }
        }
        defer { isDone.change { $0 = true } }
        let tasks = Task {
            while !isDone.value {
                // Of keys that no thread writes: a load of another manager would not know of the write.
                for cache in caches {
                    do { _ = try await cache.value(forKey: 9) { _ in "loaded" } } catch {}
                    do { try await cache.setValue("task", forKey: 8) } catch {}
                }
            }
        }
        for _ in 0..<20 {
            let count = written.value.count
            try await Waiting.until { written.value.count > count + 3 }
            for manager in managers { try await manager.suspend() }
            #expect(try locks() == [] && openFiles() == [])
            for manager in managers { manager.resume() }
        }
        isDone.change { $0 = true }
        try await onThread { for thread in threads { try thread.value() } }
        await tasks.value
        for (key, value) in written.value { #expect(caches[0][key] == value && caches[1][key] == value) }
        #expect(try await managers[0].verify().problems == [])
    }

    @Test func `a suspension waits for the closure of a transaction, and from inside it throws`() throws {
        let manager = try place.manager { $0.log = { _ in } }
        let cache = try cache(manager)
        let (begun, end) = (LoadGate(), LoadGate())
        let body = SideThread {
            try manager.transaction { transaction in
                try transaction.setValue("one", forKey: 1, in: cache)
                expectError(.reentrant) { try manager.suspend() }
                begun.open()
                try end.wait()
            }
        }
        try begun.wait()
        let suspension = SideThread { try manager.suspend() }
        try Waiting.until { manager.store.isSuspended }
        #expect(suspension.result == nil)
        end.open()
        try body.value()
        try suspension.value()
        #expect(try locks() == [])
        manager.resume()
        #expect(cache[1] == "one")
    }

    @Test func `resuming what is not suspended changes nothing, and a deleted store is noticed`() throws {
        let manager = try place.manager { $0.log = { _ in } }
        let cache = try cache(manager)
        cache[1] = "one"
        manager.resume()
        #expect(manager.store.watch.knownEpoch != 0 && cache.memory[1] == "one")
        expectError(.reentrant) { try cache.update(1) { _ in try manager.suspend() } }
        #expect(manager.store.watch.knownEpoch != 0)
        let stream = cache.changes(every: .zero)
        try manager.suspend()
        try CacheManager.deleteStore(at: place.url)
        manager.resume()
        cache[2] = "two"
        #expect(cache[1] == nil && cache[2] == "two")
        #expect(try manager.verify().problems == [])
        withExtendedLifetime(stream) {}
    }

    @Test func `the progress of a verification may suspend the manager`() throws {
        let manager = try place.manager { $0.log = { _ in } }
        let cache = try cache(manager)
        for key in 0..<1200 { cache[key] = "x" }
        let verification = SideThread {
            expectError(.suspended) {
                _ = try manager.verify { _ in do { try manager.suspend() } catch { Issue.record(error) } }
            }
        }
        try verification.value()
        #expect(try locks() == [])
        manager.resume()
        #expect(try manager.verify().isHealthy)
    }

    @Test(arguments: [true, false])
    func `an eviction closure has no timer while its manager is suspended`(isSuspendedByClosure: Bool) throws {
        let manager = try place.manager { $0.log = { _ in } }
        let cache = try cache(manager)
        cache[1] = "one"
        let calls = Counter()
        let task = cache.evict(every: .seconds(1)) { _ in
            if calls.increment() == 1, isSuspendedByClosure {
                do { try manager.suspend() } catch { Issue.record(error) }
            }
            return false
        }
        if isSuspendedByClosure {
            place.clock.advance(by: .seconds(1))
        } else {
            #expect(place.clock.pendingCount == 1)
            try manager.suspend()
        }
        let count = calls.value
        for _ in 0..<3 {
            #expect(place.clock.pendingCount == 0)
            place.clock.advance(by: .seconds(1))
        }
        #expect(calls.value == count)
        manager.resume()
        #expect(place.clock.pendingCount == 1)
        place.clock.advance(by: .seconds(1))
        #expect(calls.value == count + 1)
        try manager.suspend()
        task.cancel()
        manager.resume()
        #expect(place.clock.pendingCount == 0)
    }

    @Test func `a store in memory is suspended too`() throws {
        let manager = try CacheManager.inMemory(configuration: .init(log: { _ in }))
        let cache = try cache(manager)
        cache[1] = "one"
        try manager.suspend()
        expectError(.suspended) { try cache.setValue("two", forKey: 1) }
        manager.resume()
        #expect(manager.store.watch.knownEpoch != 0)
        #expect(cache[1] == "one")
        cache[1] = "two"
        #expect(cache[1] == "two")
    }
}
