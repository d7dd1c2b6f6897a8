/// Tells a flight's storing whether it may still store.
///
/// What was written while a generation ran is not overwritten by its late result. So the one who stores asks at the place
/// where the order of writes is decided, and what is written before that place has been noted by then.
package struct FlightPermit<Key: Sendable>: Sendable {
    private let ask: @Sendable (Key) -> Bool

    init(_ ask: @escaping @Sendable (Key) -> Bool) {
        self.ask = ask
    }

    /// Whether the value for this key may be stored now; asked again, it may answer no, but not yes after a no.
    ///
    /// A yes keeps others from storing a generated value for this key until this storing has returned or thrown.
    package func mayStore(_ key: Key) -> Bool { ask(key) }
}
