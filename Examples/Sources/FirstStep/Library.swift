import Foundation
import Larder

@main
struct Library {
    static func main() async throws {
        let manager = try await CacheManager.open(name: "Library")
        let books: Cache<Int, String> = try await manager.cache(named: "books", version: "1", maxAge: .days(7))
        print("Found:", try await books.value(forKey: 1) ?? "nothing")
        try await books.setValue("Emma", forKey: 1)
    }
}
