internal import LarderLocks

/// The waiting wakeups as a binary heap, soonest first.
///
/// Each wakeup knows its place, so a cancelled one is removed at once and does not wait with its action.
package struct WakeupHeap<Moment: Comparable & Sendable>: Sendable {
    package typealias Item = (due: Moment, wakeup: Wakeup)

    private var items: [Item] = []

    package init() {}

    package var count: Int { items.count }
    package var first: Item? { items.first }

    /// - Complexity: O(log n)
    package mutating func insert(_ wakeup: Wakeup, at due: Moment) {
        items.append((due, wakeup))
        moveUp((due, wakeup), from: items.count - 1)
    }

    /// Removes the first wakeup.
    ///
    /// - Complexity: O(log n)
    package mutating func removeFirst() -> Wakeup { remove(at: 0) }

    /// Removes a wakeup, and returns it if it was in the heap.
    ///
    /// - Complexity: O(log n)
    package mutating func remove(_ wakeup: Wakeup) -> Wakeup? {
        let place = wakeup.place.load(ordering: .relaxed)
        guard items.indices.contains(place), items[place].wakeup === wakeup else { return nil }
        return remove(at: place)
    }

    private mutating func remove(at place: Int) -> Wakeup {
        let (removed, last) = (items[place].wakeup, items.removeLast())
        removed.place.store(-1, ordering: .relaxed)
        if place == items.count { return removed }
        if place > 0, last.due < items[(place - 1) / 2].due {
            moveUp(last, from: place)
        } else {
            moveDown(last, from: place)
        }
        return removed
    }

    private mutating func moveUp(_ item: Item, from start: Int) {
        var place = start
        while place > 0, item.due < items[(place - 1) / 2].due {
            put(items[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(item, at: place)
    }

    private mutating func moveDown(_ item: Item, from start: Int) {
        var place = start
        while 2 * place + 1 < items.count {
            var child = 2 * place + 1
            if child + 1 < items.count, items[child + 1].due < items[child].due { child += 1 }
            if item.due <= items[child].due { break }
            put(items[child], at: place)
            place = child
        }
        put(item, at: place)
    }

    private mutating func put(_ item: Item, at place: Int) {
        items[place] = item
        item.wakeup.place.store(place, ordering: .relaxed)
    }
}
