import Larder
import Testing

struct CachedTests {
    private struct Settings {
        @Cached<String, String> var theme: String
        @Cached<String, Int?> var note: Int?

        init(_ texts: Cache<String, String>, _ notes: Cache<String, Int?>) {
            _theme = Cached(wrappedValue: "light", "theme", in: texts)
            _note = Cached(wrappedValue: 3, "note", in: notes)
        }
    }

    @Test func `a property has its default until it is written, and again after a reset`() throws {
        let manager = try CacheManager.inMemory()
        let texts: Cache<String, String> = try manager.cache(named: "texts", version: "1", maxAge: .unlimited)
        let notes: Cache<String, Int?> = try manager.cache(named: "notes", version: "1", maxAge: .unlimited)
        let settings = Settings(texts, notes)
        #expect(settings.theme == "light")
        #expect(try texts.isEmpty)
        settings.theme = "dark"
        #expect(Settings(texts, notes).theme == "dark")
        #expect(texts["theme"] == "dark")
        settings.$theme.reset()
        #expect(settings.theme == "light")
        #expect(settings.note == 3)
        settings.note = nil
        #expect(settings.note == nil)
        #expect(try notes.count == 1)
    }

    @Test func `a store that is closed gives the default`() throws {
        let manager = try CacheManager.inMemory()
        let texts: Cache<String, String> = try manager.cache(named: "texts", version: "1", maxAge: .unlimited)
        let cached = Cached(wrappedValue: "light", "theme", in: texts)
        cached.wrappedValue = "dark"
        try manager.close()
        #expect(cached.wrappedValue == "light")
        #expect(texts.statistics.failures == 1)
    }
}
