import Foundation
import Larder
import LarderTestSupport
import Testing

/// Expects what holds whatever was done: the tiers agree, counts are those of the rows, rows are those of the files, and
/// nobody is held up.
func expectContract(_ cache: Cache<String, [Int]>, _ time: ManualClock) throws {
    // As it was left, before anything that brings a value into memory.
    try expectMemoryAgreesWithDisk(cache)
    try expectAgreement(cache)
    try cache.removeExpired()
    try expectMemoryAgreesWithDisk(cache)
    try expectMemoryIsCounted(cache)
    try cache.removeExpired()
    let store = StoreProbe(cache.manager)
    let rows = try store.rows(ofCache: cache.name)
    #expect(try cache.count == rows.count)
    #expect(try cache.sizeOnDisk == rows.size)
    // Nothing was interrupted, so nothing needs an hour and a sweep to go.
    #expect(try store.fileProblems() == [])
    try cache.manager.maintain()
    #expect(try store.fileProblems(isSwept: true) == [])
    let report = try cache.manager.verify()
    #expect(report.isHealthy, "\(report.problems)")
    // Behind maintenance, which leaves nothing to be done at the time that passes here, and many reads, of which the second
    // keeps its transaction open.
    try expectAgreement(cache)
    if let url = cache.manager.url {
        try expectNothingHeld(at: url, time)
        try expectNoValueIsOpen(at: url)
    }
    // The time that has passed may have set something going.
    try Waiting.until { try store.isIdle }
}

/// The files of values, which lie in folders of their folder, are closed again.
private func expectNoValueIsOpen(at url: URL) throws {
    let folder = url.deletingPathExtension().path + ".files/"
    try OpenFiles.wait(
        for: { $0.hasPrefix(folder) && $0.dropFirst(folder.count).contains("/") }, until: { $0 == 0 })
}

/// What memory has is what the rows say.
private func expectMemoryAgreesWithDisk(_ cache: Cache<String, [Int]>) throws {
    // Taken before a look at any row, which may show memory that it was wrong.
    let memory = Array(cache.memory)
    for (key, value) in memory { #expect(try cache.disk.value(forKey: key) == value, "\(key)") }
}

/// What memory has costs what its payloads have in bytes, and is within the limits.
private func expectMemoryIsCounted(_ cache: Cache<String, [Int]>) throws {
    var cost = 0
    var count = 0
    for (key, _) in cache.memory {
        let entry = try #require(try cache.metadata(forKey: key))
        cost += entry.size - (try cache.extendedData(forKey: key)?.count ?? 0)
        count += 1
    }
    #expect(cache.memory.count == count)
    #expect(cache.memory.totalCost == cost)
    #expect(count <= cache.memory.countLimit ?? .max)
    #expect(cost <= cache.memory.costLimit ?? .max)
}
