/// What was told to a closure, in order, from any thread.
package final class Told<Item: Sendable>: Sendable {
    private let items = Locked<[Item]>([])

    package init() {}

    package var all: [Item] { items.value }

    package func add(_ item: Item) { items.change { $0.append(item) } }
}
