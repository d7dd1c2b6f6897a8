package import LarderStore

extension Change {
    package static func take(_ key: StoredKey) -> Change { Change(.take(key)) }

    package static func change(
        _ key: StoredKey, _ change: AttributeChange, at moment: Int64 = .min, by origin: Origin = .program
    ) -> Change {
        Change(.attributes(key, change, at: moment), by: origin)
    }
}
