import Synchronization

/// The textbook LRU: a dictionary of nodes that are objects, in a linked list, behind a lock.
final class NodeLRU<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private final class Node {
        let key: Key
        var value: Value
        var newer: Node?
        unowned(unsafe) var older: Node?

        init(key: Key, value: Value) {
            self.key = key
            self.value = value
        }
    }

    private struct State {
        var nodes: [Key: Node] = [:]
        var newest: Node?
        var oldest: Node?

        mutating func unlink(_ node: Node) {
            if let newer = node.newer { newer.older = node.older } else { newest = node.older }
            if let older = node.older { older.newer = node.newer } else { oldest = node.newer }
            node.newer = nil
            node.older = nil
        }

        mutating func link(_ node: Node) {
            node.older = newest
            newest?.newer = node
            newest = node
            if oldest == nil { oldest = node }
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int = .max) {
        self.limit = limit
    }

    deinit {
        state.withLock { state in
            // One by one: the list would be released recursively.
            while let node = state.oldest { state.unlink(node) }
        }
    }

    subscript(key: Key) -> Value? {
        get {
            state.withLock { state in
                guard let node = state.nodes[key] else { return nil }
                if state.newest !== node {
                    state.unlink(node)
                    state.link(node)
                }
                return node.value
            }
        }
        set {
            guard let newValue else { return }
            state.withLock { state in
                if let node = state.nodes[key] {
                    node.value = newValue
                    state.unlink(node)
                    state.link(node)
                    return
                }
                let node = Node(key: key, value: newValue)
                state.nodes[key] = node
                state.link(node)
                if state.nodes.count > limit, let oldest = state.oldest {
                    state.unlink(oldest)
                    state.nodes[oldest.key] = nil
                }
            }
        }
    }
}
