extension Scenario {
    /// Values of 100 KB: plain files next to a cache that keeps each in a file.
    ///
    /// Values are created before the measured part. Nothing is removed: ext4 searches long for a number that no file had in
    /// the last seconds.
    static let files: [Scenario] = [
        file("file new", goal: 1.0) { bench, files in try put(bench.newKeys, bench, files) },
        file("file replace", goal: 0.3) { bench, files in try put(presentKeys(bench), bench, files) },
        file("file get", goal: 1.7) { bench, files in
            let keys = presentKeys(bench)
            try bench.measure {
                for key in keys { guard try files.get(key) != nil else { preconditionFailure("\(key) is missing.") } }
            }
        },
    ]

    private static func file(
        _ name: String, goal: Double, _ body: @escaping @Sendable (Subjects, any FileSubject) throws -> Void
    ) -> Scenario {
        Scenario(
            name: name, keys: 200, goal: goal,
            raw: { bench in try body(bench, bench.files.get().plain) },
            store: { bench in try body(bench, bench.files.get().stored) })
    }

    private static func put(_ keys: [Int64], _ bench: Subjects, _ files: any FileSubject) throws {
        let values = keys.map { _ in bench.value(FileSubjects.valueSize) }
        try bench.measure { for (key, value) in zip(keys, values) { try files.put(key, value) } }
    }

    /// Returns keys that have a value, at random and the same for both subjects.
    private static func presentKeys(_ bench: Subjects) -> [Int64] {
        bench.newKeys.map { FileSubjects.keys[Int($0) % FileSubjects.keys.count] }
    }
}
