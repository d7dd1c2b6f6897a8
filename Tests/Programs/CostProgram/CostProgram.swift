import Foundation
import Larder
import LarderCostCounter
import LarderLocks

/// Prints what one call of each kind costs the thread that makes it, as a table: `larder-test-costs FOLDER`.
///
/// The cost of a call is the tenth least of many, which leaves out what happens
/// once in a while: a table that grows, a log that is copied, a page that is split, a random name that is short.
@main
struct CostProgram {
    struct Article: Codable {
        var title = "A title of some length"
        var byline = "An author"
        var views = 1234
    }

    static func main() throws {
        guard larder_counts() == 1 else { return print("nothing is counted here") }
        #if DEBUG
        LockCount.observer = larder_count_lock
        #endif
        // Paths of one length: a longer one takes other allocations.
        let folder = CommandLine.arguments[1]
        let rest = String(repeating: "x", count: max(1, 120 - folder.utf8.count))
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder).appendingPathComponent(rest).appendingPathComponent("store.sqlite"),
            configuration: CacheManager.Configuration(maintenanceInterval: nil))
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "1", maxAge: .days(7))
        let images: Cache<Int, Data> = try manager.cache(named: "images", version: "1", maxAge: .days(7))
        let (article, image) = (Article(), Data(repeating: 7, count: 100_000))
        print("                    locks  allocations  system calls  statements  pages written")
        row("set") { articles[$0] = article }
        row("replace") { articles[$0] = article }
        row("hit") { _ = articles[$0] }
        row("miss") { _ = articles[-1 - $0] }
        articles.memory.removeAll()
        row("get from the disk") { _ = articles[$0] }
        try row("load") { _ = try articles.value(forKey: 1000 + $0) { _ in article } }
        try row("remove") { try articles.remove($0) }
        // No stream of events exists, and the log is the default.
        let recent: Cache<Int, Article> = try manager.cache(
            named: "recent", version: "1", maxAge: .days(7), options: CacheOptions(disk: DiskLimits(countLimit: 10)))
        row("set and evict", allocationStep: 10) { recent[$0] = article }
        try recent.disk.setLimits(DiskLimits())
        row("set 100 KB") { images[$0] = image }
        images.memory.removeAll()
        row("get 100 KB") { _ = images[$0] }
        try row("remove 100 KB") { try images.remove($0) }
        try manager.close()
    }

    /// - Parameter allocationStep: What allocations are rounded down to, where they depend on what other threads do.
    private static func row(_ name: String, allocationStep: Int = 1, _ body: (Int) throws -> Void) rethrows {
        let count = 200
        var costs: [larder_costs] = []
        costs.reserveCapacity(count)
        for key in 0..<count {
            let before = larder_costs_so_far()
            try body(key)
            let after = larder_costs_so_far()
            costs.append(
                larder_costs(
                    locks: after.locks - before.locks, allocations: after.allocations - before.allocations,
                    calls: after.calls - before.calls, statements: after.statements - before.statements,
                    pages: after.pages - before.pages))
        }
        func column(_ part: KeyPath<larder_costs, Int>, _ width: Int, step: Int = 1) -> String {
            let least = costs.dropFirst(20).map { $0[keyPath: part] }.sorted()[9] / step * step
            return String(repeating: " ", count: max(0, width - "\(least)".count)) + "\(least)"
        }
        let label = name + String(repeating: " ", count: max(0, 18 - name.count))
        print(
            label + column(\.locks, 7) + column(\.allocations, 13, step: allocationStep) + column(\.calls, 14)
                + column(\.statements, 12)
                + column(\.pages, 15))
    }
}
