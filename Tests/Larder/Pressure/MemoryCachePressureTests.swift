import Dispatch
import Foundation
import Larder
import LarderLocks
import LarderTestSupport
import Testing

#if canImport(Glibc)
import Glibc
#endif

struct MemoryCachePressureTests {
    @Test func `by hand, a warning halves and a critical level empties`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<100 { cache[key] = key }
        cache.handleMemoryPressure(.warning)
        #expect(cache.orderedKeys == Array(50..<100))
        cache.handleMemoryPressure(.critical)
        #expect(cache.isEmpty)
    }

    @Test func `a warning halves the cost too`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<10 { cache.setValue(0, forKey: key, cost: key == 9 ? 100 : 1) }
        cache.handleMemoryPressure(.warning)
        #expect(cache.totalCost <= 54)
    }

    @Test func `the caller's handler comes first, outside locks`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache[1] = 1
        let seen = Mutex<[Int]>([])
        cache.memoryPressureHandler = { [unowned cache] level in
            #expect(level == .critical)
            seen.withLock { $0.append(cache.count) }
            cache.memoryPressureHandler = nil
        }
        cache.handleMemoryPressure(.critical)
        cache.handleMemoryPressure(.critical)
        #expect(seen.withLock(\.self) == [1] && cache.isEmpty)
        #expect(cache.memoryPressureHandler == nil)
    }

    @Test func `a warning for an empty cache and one of a single entry`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache.handleMemoryPressure(.warning)
        cache[1] = 1
        cache.handleMemoryPressure(.warning)
        #expect(cache.isEmpty)
    }

    @Test func `the watcher is there while a cache is, once, and leaves nothing behind`() {
        let started = Counter()
        let watcher = PressureWatcher { _ in
            started.increment()
            return nil
        }
        var caches: [MemoryCache<Int, Int>] = []
        for _ in 0..<3 {
            let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
            cache[1] = 1
            watcher.add(cache)
            caches.append(cache)
        }
        #expect(watcher.memberCount == 3 && started.value == 1)
        watcher.notify(.critical)
        #expect(caches.allSatisfy { $0.isEmpty })
        for cache in caches { watcher.remove(ObjectIdentifier(cache)) }
        #expect(watcher.memberCount == 0 && !watcher.isWatching)
        watcher.add(caches[0])
        #expect(started.value == 2, "the next first cache asks again")
        watcher.remove(ObjectIdentifier(caches[0]))
    }

    @Test func `caches that come and go in a loop make no source each`() {
        let (started, time) = (Counter(), ManualTime())
        let watcher = PressureWatcher(timekeeper: time.timekeeper) { _ in
            started.increment()
            return nil
        }
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for _ in 0..<1000 {
            watcher.add(cache)
            watcher.remove(ObjectIdentifier(cache))
        }
        #expect(started.value == PressureWatcher.mostAtOnce && time.pendingCount == 1)
        watcher.add(cache)
        time.advance(by: .seconds(1))
        #expect(started.value == PressureWatcher.mostAtOnce + 1, "who is still there is listened for")
        watcher.remove(ObjectIdentifier(cache))
        time.advance(by: .seconds(1))
        watcher.add(cache)
        #expect(started.value == PressureWatcher.mostAtOnce + 2 && time.pendingCount == 0)
        watcher.remove(ObjectIdentifier(cache))
    }

    @Test func `opting out means that the system is not listened to`() {
        let quiet = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        quiet[1] = 1
        var listening: MemoryCache<Int, Int>? = MemoryCache()
        listening?[1] = 1
        weak let released = listening
        #expect(PressureWatcher.shared.isListening(listening))
        #expect(!PressureWatcher.shared.isListening(quiet))
        listening = nil
        #expect(released == nil)
    }

    #if os(Linux)
    @Test func `a trigger that fires reaches the caches, and the end of the watch closes everything`() throws {
        // Out-of-band data raises POLLPRI, as the kernel's triggers do.
        let sockets = connectedSockets()
        let (reader, writer) = try #require(sockets)
        let levels = Told<MemoryPressure>()
        let (arrived, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // Not known by its number, which some other test's file may have as soon as it is free.
        let socket = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(reader)")
        #expect(try OpenFiles.paths { $0 == socket }.count == 1)
        let trigger = PressureSource.Trigger(descriptor: reader, level: .critical)
        let source = PressureSource(
            [trigger],
            notify: { level in
                // Taken out, or it would be raised again at once.
                var byte: UInt8 = 0
                recv(reader, &byte, 1, CInt(MSG_OOB))
                levels.add(level)
                arrived.signal()
            },
            ended: { ended.signal() })
        #expect(source != nil)
        var byte: UInt8 = 1
        #expect(send(writer, &byte, 1, CInt(MSG_OOB)) == 1)
        arrived.wait()
        #expect(levels.all == [.critical])
        source?.stop()
        ended.wait()
        #expect(try OpenFiles.paths { $0 == socket } == [], "the trigger's file is closed")
        close(writer)
    }

    @Test func `where no trigger can be opened there is nothing to watch`() throws {
        let folder = try TemporaryFolder()
        // Nothing is there, a folder cannot be written, a file of the system's takes no trigger.
        let paths = [folder("absent").path, folder.url.path, "/proc/self/oom_score"]
        #expect(PressureSource.files(paths, stallMicroseconds: 200_000) { _ in } == nil)
        #expect(try folder.names == [])
        // Whatever this system has, to watch it and to end that does no harm.
        PressureSource.system { _ in }?.stop()
    }

    @Test(.enabled(if: MemoryGroup.isAvailable, "no control group to make memory scarce in, which takes root"))
    func `the kernel's triggers fire`() throws {
        let levels = Told<MemoryPressure>()
        let ended = DispatchSemaphore(value: 0)
        // A microsecond of waiting: a two-hundred-thousandth of what the caches of other tests listen for.
        let source = PressureSource.system(
            stallMicroseconds: 1,
            { level in
                levels.add(level)
                ended.signal()
            })
        try #require(source != nil)
        defer { source?.stop() }
        // The next group waits for as long as it takes; most often the first one is enough.
        let end = DispatchTime.now() + .seconds(120)
        repeat {
            try MemoryGroup.writeFile(mebibytes: 12, limit: 4)
        } while ended.wait(timeout: min(end, DispatchTime.now() + .seconds(3))) != .success && DispatchTime.now() < end
        #expect(!levels.all.isEmpty)
    }

    @Test func `the source of a watcher ends with the last cache, and not before`() throws {
        let sockets = connectedSockets()
        let (reader, writer) = try #require(sockets)
        defer { close(writer) }
        let (arrived, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let watcher = PressureWatcher { notify in
            PressureSource(
                [PressureSource.Trigger(descriptor: reader, level: .critical)],
                notify: { level in
                    // Taken out, or it would be raised again at once.
                    var byte: UInt8 = 0
                    recv(reader, &byte, 1, CInt(MSG_OOB))
                    notify(level)
                    arrived.signal()
                },
                ended: { ended.signal() })
        }
        let caches = (0..<2).map { _ in MemoryCache<Int, Int>(clearsOnMemoryPressure: false) }
        for cache in caches {
            cache[1] = 1
            watcher.add(cache)
        }
        watcher.remove(ObjectIdentifier(caches[0]))
        #expect(watcher.isWatching, "one is left")
        var byte: UInt8 = 1
        #expect(send(writer, &byte, 1, CInt(MSG_OOB)) == 1)
        arrived.wait()
        #expect(caches.map(\.count) == [1, 0], "who has left hears nothing")
        watcher.remove(ObjectIdentifier(caches[1]))
        #expect(!watcher.isWatching)
        ended.wait()
        // Gives nothing, and does not wait, once the other end is closed; its number may be another file's by now.
        #expect(recv(writer, &byte, 1, 0) <= 0)
    }

    private func connectedSockets() -> (CInt, CInt)? {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isReady = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                bind(listener, general, size) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, general, &size) == 0
            }
        }
        guard isReady else { return nil }
        let writer = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(writer, $0, size) == 0 }
        }
        guard isConnected else { return nil }
        return (accept(listener, nil, nil), writer)
    }
    #endif
}
