import Foundation
import Larder
import LarderTestSupport
import Testing

struct BackgroundCheckpointTests {
    private struct Running {
        var now = 0
        var most = 0
        var ended = 0
    }

    @Test func `while a log is copied commits go on, and none of them starts another copying`() throws {
        let place = try StorePlace()
        let running = Locked(Running())
        let manager = try place.manager { configuration in
            configuration.wake = { delay, action in
                let wakeup = Wakeup(action)
                // What is to be done at once is the copying; the rest may wait for ever.
                guard delay == .zero else { return wakeup }
                running.change {
                    $0.now += 1
                    $0.most = max($0.most, $0.now)
                }
                Thread.detachNewThread {
                    wakeup.fire()
                    running.change {
                        $0.now -= 1
                        $0.ended += 1
                    }
                }
                return wakeup
            }
        }
        // Files, since these are synced while others write.
        let cache: Cache<Int, Data> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, inlineLimit: 0))
        // On a slow machine one copying lasts for many commits: written on until another has followed it.
        try Waiting.until {
            for number in 0..<500 { try cache.setValue(Data(count: 100), forKey: number) }
            return running.value.ended > 1
        }
        try Waiting.until { running.value.now == 0 }
        #expect(running.value.most == 1)
        try manager.close()
    }
}
