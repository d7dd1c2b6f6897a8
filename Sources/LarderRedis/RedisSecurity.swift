/// How connections with a server are encrypted, which an address of `rediss://` asks for.
///
/// The product `LarderRedisTLS` makes one: `RedisSecurity.tls()`.
public struct RedisSecurity: Sendable {
    /// Returns the encryption of one connection; throws ``Failure`` if that cannot be.
    let cipher: @Sendable (_ host: String) throws(Failure) -> any RedisCipher

    /// Why a connection cannot be encrypted.
    package struct Failure: Error, Hashable {
        /// A sentence that says what is wrong.
        package let message: String

        package init(_ message: String) { self.message = message }
    }

    package init(_ cipher: @escaping @Sendable (_ host: String) throws(Failure) -> any RedisCipher) {
        self.cipher = cipher
    }
}

/// The encryption of one connection.
///
/// Safety: Bytes are lent, and used inside of the call.
///
/// The thread of a link gives it what has arrived, and takes out what that says. Callers let it seal what they send, one at a time.
package protocol RedisCipher: AnyObject, Sendable {
    /// A Boolean value that indicates whether both sides know each other, so that something can be sealed.
    var isReady: Bool { get }

    /// Takes bytes that have arrived.
    func take(_ bytes: UnsafeRawBufferPointer)

    /// Reads what the bytes that were taken say, and returns its length; 0 if more have to arrive.
    ///
    /// - Throws: If the other side has ended the connection, or is not who it should be.
    func read(into bytes: UnsafeMutableRawBufferPointer) throws(RedisSecurity.Failure) -> Int

    /// Seals bytes, which are sent by ``takeOutgoing()``; returns false if the connection has ended.
    func seal(_ bytes: [UInt8]) -> Bool

    /// Returns what has to be sent next, also that which the two sides say to each other.
    func takeOutgoing() -> [UInt8]
}
