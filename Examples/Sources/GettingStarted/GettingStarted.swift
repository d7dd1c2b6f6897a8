import Foundation
import Larder

@main
struct Library {
    static func main() async throws {
        let manager = try await CacheManager.open(name: "Library")
        let books: Cache<Int, String> = try await manager.cache(named: "books", version: "1", maxAge: .days(7))
        print("Found:", books[1] ?? "nothing")
        books[1] = "Emma"

        let book = try await books.value(forKey: 2) { id in
            print("Loading book \(id)")
            return "Persuasion"
        }
        print("Book 2:", book)

        for (id, title) in books { print("\(id) is \(title)") }

        var later = CacheManager.Configuration(maintenanceInterval: nil)
        later.clock = { Date() + 8 * 86_400 }
        let future = try await CacheManager.open(name: "Library", configuration: later)
        let old: Cache<Int, String> = try await future.cache(named: "books", version: "1", maxAge: .days(7))
        print("In eight days:", old[1] ?? "nothing")
        try await future.close()

        let options = CacheOptions(disk: DiskLimits(countLimit: 2))
        let searches: Cache<Int, String> = try await manager.cache(
            named: "searches", version: "1", maxAge: .days(7), options: options)
        for id in 1...5 { searches[id] = "search \(id)" }
        print("Kept:", searches.keys.map { $0 })

        let ranks: Cache<Int, Int> = try await manager.cache(named: "searches", version: "2", maxAge: .days(7))
        print("In version 2:", try ranks.count)

        do {
            try await books.setValue("Sanditon", forKey: 3)
        } catch let error as CacheError {
            print(error.message)
        }
        try await manager.close()
    }
}
