import Foundation
import Larder

#if canImport(CryptoKit)
import CryptoKit
#endif

/// Keeps notes encrypted, and changes the key.
@main
struct Encrypted {
    static func main() async throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-encrypted/notes.sqlite")
        let keys = [
            1: Array("the first key of 32 bytes length.".utf8), 2: Array("the second key, of 32 bytes too.".utf8),
        ]
        let first = try CacheManager(url: url)
        let notes: Cache<Int, String> = try await first.cache(
            named: "notes", version: "1", maxAge: .unlimited, codec: .cbor.then(cipher(1, keys)))
        try await notes.setValues([1: "the combination is 4711", 2: "the key is under the mat"])
        print("Read with the key: \(notes[1] ?? "nothing")")
        try await first.maintain()
        try await first.close()
        print("The file shows a note: \(try Data(contentsOf: url).range(of: Data("combination".utf8)) != nil)")

        // The number of the key is in the identifier of the codec, so no value is read by a wrong one.
        let second = try CacheManager(url: url)
        let rotated: Cache<Int, String> = try await second.cache(
            named: "notes", version: "2", maxAge: .unlimited, codec: .cbor.then(cipher(2, keys)),
            migrations: [.from("1", as: String.self, codec: .cbor.then(cipher(1, keys))) { $0 }])
        print("Read with another key after a migration: \(rotated[2] ?? "nothing")")

        let third: Cache<Int, String> = try await second.cache(
            named: "notes", version: "2", maxAge: .unlimited, codec: .cbor.then(cipher(1, keys)))
        print("Opened with the old key, the cache is empty: \(try third.count) notes")
        try await second.close()
    }

    /// Encrypts with the key of a number.
    ///
    /// A program has its keys in the keychain, and not in its source. Keys of the cache, tags and extended data are not
    /// encrypted.
    private static func cipher(_ number: Int, _ keys: [Int: [UInt8]]) -> DataTransform {
        let key = Array((keys[number] ?? []).prefix(32))
        #if canImport(CryptoKit)
        return DataTransform(identifier: "aes-\(number)") { plain in
            guard let sealed = try AES.GCM.seal(plain, using: SymmetricKey(data: key)).combined else {
                throw CryptoKitError.incorrectParameterSize
            }
            return sealed
        } undo: { sealed in
            try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: SymmetricKey(data: key))
        }
        #else
        return DataTransform(identifier: "aes-\(number)") { plain in
            try SealedBytes.seal(plain, key)
        } undo: { sealed in
            try SealedBytes.open(sealed, key)
        }
        #endif
    }
}
