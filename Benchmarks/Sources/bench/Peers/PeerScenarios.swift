import Foundation
import Larder

/// The same work by other stores, each in a process of its own, beside SQLite in one.
var peerScenarios: [Scenario] {
    [
        scenario("set", PeerWork(operation: .set, survives: .crash)),
        scenario("replace", PeerWork(operation: .replace, survives: .crash)),
        scenario("set-power-loss", PeerWork(operation: .set, survives: .power)),
        scenario("get", PeerWork(operation: .get, survives: .crash)),
        scenario("miss", PeerWork(operation: .miss, survives: .crash)),
    ]
}

private func scenario(_ name: String, _ work: PeerWork) -> Scenario {
    let own = [
        larder("larder", work, memory: .disabled),
        Variant("SQLite", needsProcess: true) {
            let raw = RawSQLite(Workplace.path().path, synchronous: work.survives == .power ? "FULL" : "NORMAL")
            raw.transaction { for key in 0..<PeerWork.entries { raw.set(key, blob(key)) } }
            return work.measure(set: raw.set, get: raw.get)
        },
    ]
    let others = Peer.present.map { peer in Variant(peer.name, needsProcess: true) { peer.measure(work) } }
    // What most programs have: the values that are read stand in memory as well.
    let fronted = work.operation == .get ? [larder("larder, memory on", work, memory: MemoryLimits())] : []
    return Scenario("peers-\(name)", own + others + fronted)
}

private func larder(_ name: String, _ work: PeerWork, memory: MemoryLimits) -> Variant {
    Variant(name, needsProcess: true) {
        var configuration = CacheManager.Configuration()
        if work.survives == .power { configuration.durability = .powerLoss }
        let store = BlobStore(entries: PeerWork.entries, memory: memory, configuration: configuration)
        return work.measure { key, data in
            attempt { try store.cache.setValue(data, forKey: key) }
        } get: {
            store.cache[$0]
        }
    }
}
