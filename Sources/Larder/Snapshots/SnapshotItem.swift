/// An entry in a snapshot.
struct SnapshotItem<Key: Sendable, Value: Sendable>: Sendable {
    var key: Key
    var value: Value
    var cost: Int
    /// The start of its age, in milliseconds since 1970; nil if the cache had no age.
    var start: Int64?
    /// Its own age, which it has in place of the cache's.
    var own: OwnAge?
}

/// An array of key, value and cost, and the start or the two numbers of an own age, where there are any.
extension SnapshotItem: Codable where Key: Codable, Value: Codable {
    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(key)
        try container.encode(value)
        try container.encode(cost)
        if let own {
            try container.encode(own.end)
            try container.encode(own.age)
        } else if let start {
            try container.encode(start)
        }
    }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        key = try container.decode(Key.self)
        value = try container.decode(Value.self)
        cost = try container.decode(Int.self)
        let moment = container.isAtEnd ? nil : try container.decode(Int64.self)
        let age = container.isAtEnd ? nil : try container.decode(Int64.self)
        if let moment, let age { own = OwnAge(end: moment, age: age) } else { start = moment }
    }
}

/// The key alone of an item whose value does not decode.
struct SnapshotItemKey<Key: Decodable>: Decodable {
    let key: Key

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        key = try container.decode(Key.self)
    }
}
