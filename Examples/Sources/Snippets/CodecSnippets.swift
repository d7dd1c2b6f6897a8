import Foundation
import Larder

#if canImport(CryptoKit)
import CryptoKit
#endif

/// The snippets of the guides about bytes: large values, codecs and migrations.
enum CodecSnippets {
    private struct Surprise: Error {}

    static func run(_ folder: URL) async throws {
        try codecs(folder.appendingPathComponent("codecs.sqlite"))
        try largeValues(folder, Data(repeating: 1, count: 100_000))
        try await migrations(folder.appendingPathComponent("shelves.sqlite"))
    }

    private static func seal(_ data: Data) throws -> Data { Data(data.map { ~$0 }) }
    private static func open(_ data: Data) throws -> Data { Data(data.map { ~$0 }) }

    private static func codecs(_ file: URL) throws {
        let manager = try CacheManager(url: file)
        let cipher = DataTransform(identifier: "aes-1", apply: { try seal($0) }, undo: { try open($0) })
        let notes: Cache<Int, String> = try manager.cache(
            named: "notes", version: "1", maxAge: .unlimited, options: CacheOptions(undecodable: .keep),
            codec: .cbor.then(cipher))
        notes[1] = "the key is under the mat"

        let newCipher = DataTransform(identifier: "aes-2", apply: { try seal($0) }, undo: { try open($0) })
        let rotated: Cache<Int, String> = try manager.cache(
            named: "notes", version: "2", maxAge: .unlimited, options: CacheOptions(undecodable: .keep),
            codec: .cbor.then(newCipher),
            migrations: [.from("1", as: String.self, codec: .cbor.then(cipher)) { $0 }])
        guard rotated[1] == "the key is under the mat" else { throw Surprise() }

        let readable: Cache<String, [Int]> = try manager.cache(
            named: "lists", version: "1", maxAge: .days(1), codec: .json)
        readable["a"] = [1, 2]

        let codec = ValueCodec<String>(
            identifier: "utf8", encode: { Data($0.utf8) }, decode: { String(decoding: $0, as: UTF8.self) })
        guard codec.identifier == "utf8" else { throw Surprise() }

        let bytes = try CBOREncoder().encode(["a": [1, 2, 3]])
        let back = try CBORDecoder().decode([String: [Int]].self, from: bytes)
        guard back == ["a": [1, 2, 3]] else { throw Surprise() }
        try manager.close()
    }

    private static func largeValues(_ folder: URL, _ photo: Data) throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("photos.sqlite"))
        let options = CacheOptions(
            disk: DiskLimits(countLimit: 10_000, sizeLimit: 512 << 20),
            inlineLimit: 16 << 10,
            fileName: { key in "\(key).jpg" })
        let photos: Cache<String, Data> = try manager.cache(
            named: "photos", version: "1", maxAge: .days(30), options: options)
        photos["cat"] = photo
        let file = try photos.fileURL(forKey: "cat")
        guard photos["cat"] == photo, file?.pathExtension == "jpg" else { throw Surprise() }

        let download = folder.appendingPathComponent("download")
        try photo.write(to: download)
        try photos.setValue(contentsOf: download, forKey: "dog", tags: ["album:7"])
        if let file = try photos.fileURL(forKey: "dog") {
            let bytes = try Data(contentsOf: file, options: .alwaysMapped)
            print(bytes.count)
        }
        let named = CacheOptions(inlineLimit: 0, fileName: { key in "cover \(key).png" })
        let album = try photos.entries(tagged: "album:7")
        guard named.inlineLimit == 0, album.count == 1 else { throw Surprise() }
        try photos.clear()
        try manager.close()
    }

    private static func migrations(_ file: URL) async throws {
        let manager = try await CacheManager.open(url: file)
        let byKey: CacheMigration<Int, String> = .from("1", as: Int.self) { key, old, metadata in
            metadata.size > 100 ? nil : "\(key): \(old)"
        }
        _ = byKey
        let old: Cache<Int, Int> = try await manager.cache(named: "shelves", version: "1", maxAge: .days(7))
        try await old.setValue(4, forKey: 1)
        let listening = Task {
            for await event in manager.events {
                if case .migrated(let report) = event.kind { print(report.dropped, report.firstDropped) }
            }
        }
        let shelves: Cache<Int, String> = try await manager.cache(
            named: "shelves", version: "2", maxAge: .days(7),
            migrations: [.from("1", as: Int.self) { "shelf \($0)" }],
            progress: { print("\($0.completed) of \($0.total)") })
        guard shelves[1] == "shelf 4" else { throw Surprise() }
        try await manager.close()
        await listening.value
    }

    private struct Story: Codable {
        var title: String
        var author: String

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            title = try values.decode(String.self, forKey: .title)
            author = try values.decodeIfPresent(String.self, forKey: .author) ?? "unknown"
        }
    }
}

#if canImport(CryptoKit)
/// A cipher of CryptoKit.
private struct Cipher {
    let key: SymmetricKey

    func seal(_ plain: Data) throws -> Data {
        guard let sealed = try AES.GCM.seal(plain, using: key).combined
        else { throw CryptoKitError.incorrectParameterSize }
        return sealed
    }

    func open(_ sealed: Data) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key)
    }
}
#endif

#if canImport(Darwin)
/// A transform that compresses.
private enum Compressed {
    static func codec() -> ValueCodec<String> {
        let compressed = ValueCodec<String>.json.then(
            DataTransform(
                identifier: "lzfse",
                apply: { try Data(referencing: NSData(data: $0).compressed(using: .lzfse)) },
                undo: { try Data(referencing: NSData(data: $0).decompressed(using: .lzfse)) }))
        return compressed
    }
}
#endif
