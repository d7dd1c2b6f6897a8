import Foundation
import Larder

/// Iterations over a hundred thousand entries of 300 bytes, beside prepared scans of the same rows.
var iterationScenarios: [Scenario] {
    let count = 100_000
    let store = Lazily { RecordStore(entries: count, keys: scattered) }
    let raw = Lazily { rawRecords(entries: count, keys: scattered) }
    let blobs = Lazily { BlobStore(entries: count, keys: scattered) }
    let rawData = Lazily { rawBlobs(entries: count, keys: scattered) }
    let decoder = CBORDecoder()
    return [
        Scenario(
            "iteration-data", target: 1.3,
            [
                Variant("larder", operations: count, once: { blobs.value }) { store in
                    var sum = 0
                    for (key, data) in store.cache { sum &+= key &+ data.count }
                    consume(sum)
                },
                Variant("scan", operations: count, once: { rawData.value }) { raw in
                    var sum = 0
                    raw.forEach { key, data in sum &+= key &+ data.count }
                    consume(sum)
                },
            ]),
        Scenario(
            "iteration", target: 1.6,
            [
                Variant("larder", operations: count, once: { store.value }) { store in
                    var sum = 0
                    for (key, record) in store.cache { sum &+= key &+ record.id }
                    consume(sum)
                },
                Variant("scan and decode", operations: count, once: { raw.value }) { raw in
                    var sum = 0
                    raw.forEach { key, data in
                        sum &+= key &+ attempt { try decoder.decode(Record.self, from: data) }.id
                    }
                    consume(sum)
                },
            ]),
        Scenario(
            "iteration-keys", target: 1.5,
            [
                Variant("larder", operations: count, once: { store.value }) { store in
                    var sum = 0
                    for key in store.cache.keys { sum &+= key }
                    consume(sum)
                },
                Variant("scan", operations: count, once: { raw.value }) { raw in
                    var sum = 0
                    raw.forEachKey { sum &+= $0 }
                    consume(sum)
                },
            ]),
        Scenario(
            "growth-of-million-pass", unit: "MB",
            [
                Variant("whole pass", needsProcess: true) {
                    let store = RecordStore(entries: 1_000_000)
                    for _ in store.cache.keys { break }
                    let before = allocatedBytes()
                    var most = before
                    for (key, _) in store.cache where key.isMultiple(of: 10_000) { most = max(most, allocatedBytes()) }
                    return Double(most - before) / 1e6
                },
                Variant("first page", needsProcess: true) {
                    let store = RecordStore(entries: 1_000_000)
                    let before = allocatedBytes()
                    var iterator = store.cache.makeIterator()
                    consume(iterator.next())
                    return Double(allocatedBytes() - before) / 1e6
                },
            ]),
    ]
}
