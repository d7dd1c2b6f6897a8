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

    @Test func `the caller's handler decides, outside locks`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 1...4 { cache[key] = key }
        let seen = Mutex<[Int]>([])
        cache.memoryPressureHandler = { [unowned cache] level in
            seen.withLock { $0.append(cache.count) }
            cache.trim(toCount: level == .critical ? 2 : 3)
        }
        cache.handleMemoryPressure(.warning)
        cache.handleMemoryPressure(.critical)
        #expect(seen.withLock(\.self) == [4, 3] && cache.orderedKeys == [3, 4])
        cache.memoryPressureHandler = nil
        cache.handleMemoryPressure(.critical)
        #expect(cache.isEmpty && cache.memoryPressureHandler == nil)
    }

    @Test func `a warning removes what the response says, and a critical level all`() {
        for (response, left) in [(PressureResponse.half, 2), (.all, 0), (.none, 4)] {
            let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false, pressureResponse: response)
            for key in 1...4 { cache[key] = key }
            cache.handleMemoryPressure(.warning)
            #expect(cache.count == left && cache.pressureResponse == response)
            cache.handleMemoryPressure(.critical)
            #expect(cache.isEmpty)
            cache.pressureResponse = .all
            cache[1] = 1
            cache.handleMemoryPressure(.warning)
            #expect(cache.isEmpty)
        }
    }

    @Test func `a warning for an empty cache and one of a single entry`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache.handleMemoryPressure(.warning)
        cache[1] = 1
        cache.handleMemoryPressure(.warning)
        #expect(cache.isEmpty)
    }

    @Test func `the watcher asks for a source once, and reaches every cache that is there`() {
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
        watcher.remove(ObjectIdentifier(caches[0]))
        watcher.notify(.critical)
        #expect(caches.map(\.count) == [1, 0, 0] && started.value == 1)
    }

    @Test func `opting out means that the system is not listened to`() {
        let quiet = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        quiet[1] = 1
        var listening: MemoryCache<Int, Int>? = MemoryCache()
        listening?[1] = 1
        weak let released = listening
        #expect(PressureWatcher.ofProcess.isListening(listening))
        #expect(!PressureWatcher.ofProcess.isListening(quiet))
        listening = nil
        #expect(released == nil)
    }

    #if os(Linux)
    @Test func `a trigger that fires reaches the caches`() throws {
        // Out-of-band data raises POLLPRI, as the kernel's triggers do.
        let sockets = connectedSockets()
        let (reader, writer) = try #require(sockets)
        defer { close(writer) }
        let arrived = DispatchSemaphore(value: 0)
        let watcher = PressureWatcher { notify in
            PressureSource([PressureSource.Trigger(descriptor: reader, level: .critical)]) { level in
                // Taken out, or it would be raised again at once.
                var byte: UInt8 = 0
                recv(reader, &byte, 1, CInt(MSG_OOB))
                notify(level)
                arrived.signal()
            }
        }
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        cache[1] = 1
        watcher.add(cache)
        var byte: UInt8 = 1
        #expect(send(writer, &byte, 1, CInt(MSG_OOB)) == 1)
        arrived.wait()
        #expect(cache.isEmpty)
    }

    @Test func `where no trigger can be opened there is nothing to watch`() throws {
        let folder = try TemporaryFolder()
        // Nothing is there, a folder cannot be written, a file of the system's takes no trigger.
        let paths = [folder("absent").path, folder.url.path, "/proc/self/oom_score"]
        #expect(PressureSource.files(paths, stallMicroseconds: 200_000) { _ in } == nil)
        #expect(try folder.names == [])
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
        // The next group waits for as long as it takes; most often the first one is enough.
        let end = DispatchTime.now() + .seconds(120)
        repeat {
            try MemoryGroup.writeFile(mebibytes: 12, limit: 4)
        } while ended.wait(timeout: min(end, DispatchTime.now() + .seconds(3))) != .success && DispatchTime.now() < end
        #expect(!levels.all.isEmpty)
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
