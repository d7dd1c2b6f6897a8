import Foundation
import Larder
import LarderTesting
import ModelLayer
import Testing

/// The tests that the guide shows.
struct TitlesTests {
    let store: TemporaryStore
    let manager: CacheManager
    let titles: Cache<Int, String>

    init() throws {
        store = try TemporaryStore()
        manager = try store.manager()
        titles = try manager.cache(named: "titles", version: "1", maxAge: .hours(1))
    }

    @Test func anEntryIsServedForAnHour() {
        titles[1] = "one"
        store.clock.advance(by: .seconds(3600))
        #expect(titles[1] == "one")
        store.clock.advance(by: .milliseconds(1))
        #expect(titles[1] == nil)
    }

    @Test func aFullDiskIsAnError() throws {
        titles[1] = "one"
        let fault = try store.fillDisk(of: manager)
        #expect(throws: CacheError.self) { try titles.setValue("new", forKey: 2) }
        try fault.end()
        try titles.setValue("new", forKey: 2)
    }

    @Test func aRestartKeepsWhatWasStored() throws {
        titles[1] = "one"
        let later: Cache<Int, String> = try store.reopen().cache(named: "titles", version: "1", maxAge: .hours(1))
        #expect(later[1] == "one")
    }
}
