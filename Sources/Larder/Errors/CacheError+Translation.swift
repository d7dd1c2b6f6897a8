internal import LarderSQLite

extension CacheError {
    /// Runs `body`, and turns whatever it throws into a `CacheError`, with `action` ("cannot open …") in the message.
    package static func translating<R>(_ action: String, _ body: () throws -> R) throws(CacheError) -> R {
        do {
            return try body()
        } catch let error as CacheError {
            throw error
        } catch let error as SQLiteError {
            throw CacheError(action, error)
        } catch let error as SystemError {
            throw CacheError(action, error)
        } catch {
            throw CacheError(.storageUnavailable, action, underlying: error)
        }
    }
}
