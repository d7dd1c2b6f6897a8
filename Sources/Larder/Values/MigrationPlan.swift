internal import LarderStore

/// The steps of an opening, put in order.
struct MigrationPlan<Key: Codable & Hashable & Sendable, Value: Sendable> {
    private typealias Step = CacheMigration<Key, Value>

    /// The first step of the shortest way from each version.
    private var next: [CacheVersion: Step] = [:]
    private let codec: ValueCodec<Value>
    private let cache: String

    /// Throws `.invalidConfiguration` unless there is one shortest way from each version.
    init(
        _ steps: [CacheMigration<Key, Value>], to version: CacheVersion, _ codec: ValueCodec<Value>,
        cacheNamed cache: String
    ) throws(CacheError) {
        (self.codec, self.cache) = (codec, cache)
        var rest = steps
        while !rest.isEmpty {
            let left = rest.filter { step in rest.contains { $0.version == step.target ?? version } }
            if left.count == rest.count {
                throw refusal("The steps from version \"\(rest[0].version)\" lead back to it.", "Remove one of them.")
            }
            rest = left
        }
        // From the end, one step further each time.
        var reached: Set = [version]
        while !reached.isEmpty {
            var found: [CacheVersion: Step] = [:]
            for step in steps where reached.contains(step.target ?? version) && next[step.version] == nil {
                if found.updateValue(step, forKey: step.version) != nil {
                    throw refusal(
                        "Two ways lead from version \"\(step.version)\" that are as short.", "Remove a step of one.")
                }
            }
            next.merge(found) { first, _ in first }
            reached = Set(found.keys)
        }
        for (index, step) in steps.enumerated() {
            guard let target = step.target else { continue }
            if steps[..<index].contains(where: { $0.version == step.version && $0.target == target }) {
                throw refusal("Two steps lead from version \"\(step.version)\" to \"\(target)\".", "Remove one.")
            }
            guard let following = next[target] else {
                throw refusal("No step leads from version \"\(target)\" to \"\(version)\".", "Add one.")
            }
            if step.conversion?.new != following.conversion?.old ?? ObjectIdentifier(Value.self) {
                throw refusal(
                    "The step from version \"\(step.version)\" gives values of another type than the one from"
                        + " \"\(target)\" takes.", "Use the same type in both.")
            }
        }
    }

    private func refusal(_ problem: String, _ remedy: String) -> CacheError {
        CacheError(
            .invalidConfiguration, "The migrations of the cache \"\(cache)\" cannot be used. \(problem) \(remedy)")
    }

    /// Returns how what is stored gets to the version that is opened; nil if no step leads from there.
    ///
    /// - Parameters:
    ///   - fileName: Returns the readable part of the name of a value file.
    ///   - rule: Returns the attributes of a converted value.
    func migration(
        from stored: CacheDeclaration, fileName: (@Sendable (String) -> String)?,
        rule: (@Sendable (Key, Value) -> EntryAttributes)?
    ) throws(CacheError) -> Migration? {
        guard let first = next[CacheVersion(stored.version)] else { return nil }
        guard let conversion = first.conversion else {
            try require(codec.identifier, of: stored)
            return .keep
        }
        guard let reader = conversion.reader(codec) else {
            throw refusal(
                "The codec of version \"\(stored.version)\" is not known, because that of the cache is your own.",
                "Give it to the step: `codec:`.")
        }
        try require(reader.codec, of: stored)
        var (steps, last) = ([conversion.convert], first)
        while let target = last.target, let following = next[target] {
            if let conversion = following.conversion { steps.append(conversion.convert) }
            last = following
        }
        let (codec, cache, keyCodec) = (codec, cache, KeyCodec<Key>())
        return .convert { [steps] row in
            do {
                let key = try keyCodec.key(row.header.key, cache: cache)
                var value = try reader.decode(row.payload)
                for step in steps {
                    guard let converted = try step(key, value, row.header) else { return nil }
                    value = converted
                }
                guard let value = value as? Value else { return nil }
                let bytes = try codec.encode(value, cache: cache, key: row.header.key.name)
                let label = fileName.flatMap { $0(row.header.key.name) }
                var converted = ConvertedRow(bytes, label?.isEmpty == true ? nil : label, of: row.header)
                try rule?(key, value)
                    .replace(
                        in: &converted.meta, &converted.end, writtenAt: row.header.writtenAt, row.header.key.name)
                return converted
            } catch {
                return nil
            }
        }
    }

    private func require(_ identifier: String, of stored: CacheDeclaration) throws(CacheError) {
        if identifier == stored.codec { return }
        throw refusal(
            "The values of version \"\(stored.version)\" were written by the codec \"\(stored.codec)\", and its step reads"
                + " \"\(identifier)\".", "Give that codec to the step: `codec:`.")
    }
}
