/// What a call for many keys has of them, and what it still asks for.
struct FlightGathering<Key: Hashable & Sendable, Output: Sendable> {
    /// The keys that have no answer, each once, in the order of the call.
    private(set) var rest: [Key]
    private(set) var values: [Key: Output] = [:]

    init(_ keys: some Sequence<Key>) {
        var seen: Set<Key> = []
        rest = keys.filter { seen.insert($0).inserted }
    }

    mutating func add(_ landing: FlightLanding<Key, Output>) {
        for key in rest { if let value = landing.values[key] { values[key] = value } }
        rest = landing.unanswered
    }
}
