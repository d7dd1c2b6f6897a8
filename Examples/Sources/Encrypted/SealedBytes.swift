#if canImport(COpenSSL)
import COpenSSL
import Foundation

/// AES of 256 bits in Galois/counter mode by the system's OpenSSL, in the form that CryptoKit has: nonce, bytes, tag.
enum SealedBytes {
    struct Failure: Error {
        let step: String
    }

    private static let (nonceSize, tagSize) = (12, 16)

    static func seal(_ plain: Data, _ key: [UInt8]) throws -> Data {
        let size = try size(of: plain.count, key)
        var generator = SystemRandomNumberGenerator()
        let nonce = (0..<nonceSize).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return try withContext { context in
            var (sealed, tag, count) = (
                [UInt8](repeating: 0, count: plain.count + 16), [UInt8](repeating: 0, count: tagSize), Int32()
            )
            try check("begin", EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce))
            try check("encrypt", EVP_EncryptUpdate(context, &sealed, &count, Array(plain), size))
            var (end, last) = ([UInt8](repeating: 0, count: 16), Int32())
            try check("end", EVP_EncryptFinal_ex(context, &end, &last))
            try check("sign", EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), &tag))
            return Data(nonce + sealed.prefix(Int(count)) + tag)
        }
    }

    static func open(_ sealed: Data, _ key: [UInt8]) throws -> Data {
        let bytes = Array(sealed)
        guard bytes.count >= nonceSize + tagSize else { throw Failure(step: "open: too short") }
        let (nonce, body) = (Array(bytes.prefix(nonceSize)), Array(bytes.dropFirst(nonceSize).dropLast(tagSize)))
        let size = try size(of: body.count, key)
        var tag = Array(bytes.suffix(tagSize))
        return try withContext { context in
            var (plain, count, last) = ([UInt8](repeating: 0, count: body.count + 16), Int32(), Int32())
            try check("begin", EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce))
            try check("decrypt", EVP_DecryptUpdate(context, &plain, &count, body, size))
            try check("take the tag", EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagSize), &tag))
            // It fails if a byte was changed, or the key is another one.
            var end = [UInt8](repeating: 0, count: 16)
            try check("verify", EVP_DecryptFinal_ex(context, &end, &last))
            return Data(plain.prefix(Int(count)))
        }
    }

    /// OpenSSL reads 32 bytes of the key, and counts in 32 bits.
    ///
    /// Of no bytes it counts nothing, so counts begin at 0.
    private static func size(of count: Int, _ key: [UInt8]) throws -> Int32 {
        guard key.count == 32 else { throw Failure(step: "use a key of \(key.count) bytes: it needs 32") }
        guard let size = Int32(exactly: count) else { throw Failure(step: "take so many bytes") }
        return size
    }

    private static func withContext(_ body: (OpaquePointer) throws -> Data) throws -> Data {
        guard let context = EVP_CIPHER_CTX_new() else { throw Failure(step: "get memory") }
        defer { EVP_CIPHER_CTX_free(context) }
        return try body(context)
    }

    private static func check(_ step: String, _ result: Int32) throws {
        if result != 1 { throw Failure(step: step) }
    }
}
#endif
