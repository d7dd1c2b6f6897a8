/// A key whose hashes are all equal.
struct CollidingKey: Hashable, Sendable {
    let number: Int

    func hash(into hasher: inout Hasher) {}
}
