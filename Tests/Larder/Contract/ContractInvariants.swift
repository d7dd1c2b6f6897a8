import Foundation
import Larder
import LarderTestSupport
import Testing

/// Expects what holds whatever was done: the tiers agree, counts are those of the rows, rows are those of the files.
func expectContract(_ cache: Cache<String, [Int]>) throws {
    try expectInvariants(cache)
    try expectMemoryAgreesWithDisk(cache)
    try cache.removeExpired()
    let rows = try RawRows(try cache.manager.store(), cacheNamed: cache.name)
    #expect(try cache.count == rows.count)
    #expect(try cache.sizeOnDisk == rows.size)
    // Nothing was interrupted, so nothing needs an hour and a sweep to go.
    #expect(try cache.manager.fileProblems() == [])
    try cache.manager.maintain()
    #expect(try cache.manager.fileProblems(isSwept: true) == [])
    let report = try cache.manager.verify()
    #expect(report.isHealthy, "\(report.problems)")
    #expect(try cache.manager.store().isIdle)
}

/// What memory has is what the rows say, at the cost of their payloads, least recent first and within its limit.
private func expectMemoryAgreesWithDisk(_ cache: Cache<String, [Int]>) throws {
    let disk = Dictionary(uniqueKeysWithValues: cache.disk.map { ($0.key, $0.value) })
    try cache.removeExpired()
    var cost = 0
    var count = 0
    for (key, value) in cache.memory {
        #expect(disk[key] == value, "\(key)")
        let entry = try #require(try cache.metadata(forKey: key))
        cost += entry.size - (try cache.extendedData(forKey: key)?.count ?? 0)
        count += 1
    }
    #expect(cache.memory.count == count)
    #expect(cache.memory.totalCost == cost)
    #expect(count <= cache.memory.countLimit ?? .max)
    #expect(cost <= cache.memory.costLimit ?? .max)
}
