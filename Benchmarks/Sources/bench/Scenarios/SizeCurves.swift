import Foundation
import Larder

/// Cost against the size of a value.
var sizeCurveScenarios: [Scenario] {
    let sizes = Options.isSmall ? [100, 10_000] : [100, 1_000, 10_000, 100_000, 1_000_000]
    return sizes.flatMap(curvePoints)
}

private func curvePoints(_ size: Int) -> [Scenario] {
    let (keys, operations) = (40, size < 100_000 ? 800 : 80)
    let editions = Counter(0)
    let store = Lazily { () -> BlobStore in
        let store = BlobStore(entries: 0)
        for key in 0..<keys { attempt { try store.cache.setValue(blob(size: size, edition: key), forKey: key) } }
        return store
    }
    let table = Lazily { () -> RawSQLite in
        let raw = RawSQLite(Workplace.path().path)
        for key in 0..<keys { raw.set(key, blob(size: size, edition: key)) }
        return raw
    }
    let folder = Lazily { () -> FileFolder in
        let files = FileFolder(Workplace.path().path + ".d")
        for key in 0..<keys { files.write(blob(size: size, edition: key), key) }
        return files
    }
    return [
        Scenario(
            "curve-size-set-\(size)", point: Point(curve: "size-set", place: Double(size)),
            [
                Variant("larder", operations: operations, once: { store.value }) { store in
                    for index in 0..<operations {
                        let data = blob(size: size, edition: editions.advance())
                        attempt { try store.cache.setValue(data, forKey: index % keys) }
                    }
                },
                Variant("SQLite", operations: operations, once: { table.value }) { raw in
                    for index in 0..<operations { raw.set(index % keys, blob(size: size, edition: editions.advance())) }
                },
                Variant("files", operations: operations, once: { folder.value }) { files in
                    for index in 0..<operations {
                        files.write(blob(size: size, edition: editions.advance()), index % keys)
                    }
                },
            ]),
        Scenario(
            "curve-size-get-\(size)", point: Point(curve: "size-get", place: Double(size)),
            [
                Variant("larder", operations: operations, once: { store.value }) { store in
                    for index in 0..<operations { consume(store.cache[index % keys]) }
                },
                Variant("SQLite", operations: operations, once: { table.value }) { raw in
                    for index in 0..<operations { consume(raw.get(index % keys)) }
                },
                Variant("files", operations: operations, once: { folder.value }) { files in
                    for index in 0..<operations { consume(files.read(index % keys)) }
                },
            ]),
    ]
}
