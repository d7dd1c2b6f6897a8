import Foundation
import Larder
import LarderTestSupport
import Testing

/// A change of key 1, which has the value 1 and the tag "t".
enum OvertakingChange: CaseIterable {
    case set, setValues, update, transaction, removeAndSet
    case touch, pin, extendedData
    case remove, removeValue, removeValues, updateToNil, removeInTransaction
    case removeAll, clear, removeAllOfManager, tag, tagOfManager, predicate, metadata
    case trim, limit, maintenance, removeExpired

    /// The value that the key has after the change.
    var value: Int? {
        switch self {
        case .set, .setValues, .update, .transaction, .removeAndSet: 2
        case .touch, .pin, .extendedData: 1
        default: nil
        }
    }

    /// Makes the change.
    func make(in cache: Cache<Int, Int>, _ time: ManualClock) throws {
        switch self {
        case .set: try cache.setValue(2, forKey: 1)
        case .setValues: try cache.setValues([1: 2, 2: 2])
        case .update: try cache.update(1) { $0 = 2 }
        case .transaction: try cache.manager.transaction { try $0.setValue(2, forKey: 1, in: cache) }
        case .removeAndSet:
            try cache.removeAll()
            try cache.setValue(2, forKey: 1)
        case .touch: try cache.touch(1)
        case .pin: try cache.setPinned(true, forKey: 1)
        case .extendedData: try cache.setExtendedData(Data([1]), forKey: 1)
        case .remove: try cache.remove(1)
        case .removeValue: try cache.removeValue(forKey: 1)
        case .removeValues: try cache.removeValues(forKeys: [1, 2])
        case .updateToNil: try cache.update(1) { $0 = nil }
        case .removeInTransaction: try cache.manager.transaction { try $0.removeValue(forKey: 1, in: cache) }
        case .removeAll: try cache.removeAll()
        case .clear: try cache.clear()
        case .removeAllOfManager: try cache.manager.removeAll()
        case .tag: try cache.removeAll(tagged: "t")
        case .tagOfManager: try cache.manager.removeAll(tagged: "t")
        case .predicate: try cache.removeAll { entry in entry.key == 1 }
        case .metadata: try cache.removeAll { key, _ in key == 1 }
        case .trim: try cache.trim(toCount: 0)
        case .limit:
            try cache.disk.setLimits(DiskLimits(countLimit: 2))
            time.advance(by: .milliseconds(1))
            for key in 8...9 { try cache.setValue(key, forKey: key) }
        case .maintenance:
            time.set(time.now + 3601)
            try cache.manager.maintain()
        case .removeExpired:
            time.set(time.now + 3601)
            try cache.removeExpired()
        }
    }
}

/// Expects that memory has no other value of a key, that every read gives this one, and that memory then has it.
func expectServed(
    _ value: Int?, forKey key: Int = 1, in cache: Cache<Int, Int>, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let copy = cache.memory[key]
    #expect(copy == nil || copy == value, sourceLocation: sourceLocation)
    #expect(cache[key] == value, sourceLocation: sourceLocation)
    #expect(cache.memory[key] == value, sourceLocation: sourceLocation)
    #expect(try cache.entry(forKey: key)?.value == value, sourceLocation: sourceLocation)
    #expect(try cache.values(forKeys: [key])[key] == value, sourceLocation: sourceLocation)
    #expect(try cache.contains(key) == (value != nil), sourceLocation: sourceLocation)
}
