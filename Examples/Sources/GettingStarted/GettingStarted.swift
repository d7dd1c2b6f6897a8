import Foundation
import Larder

@main
struct Library {
    static func main() async throws {
        let manager = try await CacheManager.open(name: "Library")
        let books: Cache<Int, String> = try await manager.cache(named: "books", version: "1", maxAge: .days(7))
        print("Found:", try await books.value(forKey: 1) ?? "nothing")
        try await books.setValue("Emma", forKey: 1)

        let book = try await books.value(forKey: 2) { id in
            print("Loading book \(id)")
            return "Persuasion"
        }
        print("Book 2:", book)

        for try await (id, title) in books.async { print("\(id) is \(title)") }

        try await books.setValue("Today's offer", forKey: 9, maxAge: .milliseconds(50))
        try await Task.sleep(for: .milliseconds(100))
        print("A moment later:", try await books.value(forKey: 9) ?? "nothing")

        let options = CacheOptions(disk: DiskLimits(countLimit: 2))
        let searches: Cache<Int, String> = try await manager.cache(
            named: "searches", version: "1", maxAge: .days(7), options: options)
        for id in 1...5 { try await searches.setValue("search \(id)", forKey: id) }
        print("Kept:", try await searches.snapshot().keys.sorted())

        let ranks: Cache<Int, Int> = try await manager.cache(named: "searches", version: "2", maxAge: .days(7))
        print("In version 2:", try await ranks.count())

        do {
            try await books.setValue("Sanditon", forKey: 3)
        } catch let error as CacheError {
            print(error.message)
        }
        try await manager.close()
    }
}
