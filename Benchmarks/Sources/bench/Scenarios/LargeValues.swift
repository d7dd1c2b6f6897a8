import Foundation
import Larder

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Values of 100 KB, beside a plain file that is written, renamed and named by a committed row.
var largeValueScenarios: [Scenario] {
    [
        large("large-set-new", target: 1) { store, number in
            attempt { try store.cache.setValue(payload(number), forKey: number) }
        } yardstick: { files, number in
            files.write(payload(number), number)
        },
        large("large-replace", target: 0.3) { store, number in
            attempt { try store.cache.setValue(payload(number), forKey: number % 20) }
        } yardstick: { files, number in
            files.write(payload(number), number % 20)
        },
        large("large-get", target: 1.7) { store, number in
            consume(store.cache[number % 20])
        } yardstick: { files, number in
            consume(files.read(number % 20))
        },
        limited,
    ]
}

// By other names, inside types that have methods of the same.
private let systemWrite = write
private let systemRead = read

private func payload(_ number: Int) -> Data {
    var data = Data(repeating: 7, count: 100_000)
    data[number % 100_000] = 1
    return data
}

/// Files in a folder, each named by a row.
private final class PlainFiles {
    private let folder = Workplace.path().path + ".d"
    private let raw = RawSQLite(Workplace.path().path)

    init() {
        mkdir(folder, 0o700)
        for number in 0..<20 { write(payload(number), number) }
    }

    func write(_ data: Data, _ number: Int) {
        let (temporary, path) = (folder + "/temporary", folder + "/\(number)")
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        data.withUnsafeBytes { precondition(systemWrite(descriptor, $0.baseAddress, $0.count) == $0.count) }
        close(descriptor)
        precondition(rename(temporary, path) == 0)
        raw.set(number, Data("\(path)\(data[number % data.count])\(number)".utf8))
    }

    func read(_ number: Int) -> [UInt8] {
        let descriptor = open(folder + "/\(number)", O_RDONLY)
        defer { close(descriptor) }
        return Array(unsafeUninitializedCapacity: 100_000) { buffer, count in
            count = systemRead(descriptor, buffer.baseAddress, 100_000)
        }
    }
}

private func large(
    _ name: String, target: Double, _ body: @escaping (BlobStore, Int) -> Void,
    yardstick: @escaping (PlainFiles, Int) -> Void
) -> Scenario {
    let (next, nextRaw) = (Counter(20), Counter(20))
    return Scenario(
        name, target: target,
        [
            Variant(
                "larder", operations: 100,
                once: {
                    let store = BlobStore(entries: 0)
                    for number in 0..<20 { attempt { try store.cache.setValue(payload(number), forKey: number) } }
                    return store
                }, { store in for _ in 0..<100 { body(store, next.advance()) } }),
            Variant("files", operations: 100, once: { PlainFiles() }) { files in
                for _ in 0..<100 { yardstick(files, nextRaw.advance()) }
            },
        ])
}

/// New keys under a count limit that is full, beside the same without one.
private var limited: Scenario {
    func variant(_ name: String, _ limits: DiskLimits) -> Variant {
        let next = Counter(20_000)
        return Variant(
            name, operations: 5_000,
            once: {
                RecordStore(entries: 20_000, disk: limits)
            },
            { store in
                for _ in 0..<5_000 {
                    let key = next.advance()
                    store.cache[key] = Record(key)
                }
            })
    }
    return Scenario(
        "set-under-limit", target: 1.5,
        [variant("full", DiskLimits(countLimit: 20_000)), variant("no limit", DiskLimits())])
}
