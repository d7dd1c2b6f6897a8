import Larder
import Testing

/// Expects a `CacheError` of this code.
@discardableResult
func expectError<R>(
    _ code: CacheError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> R
) -> CacheError? {
    do {
        _ = try body()
        Issue.record("nothing was thrown", sourceLocation: sourceLocation)
        return nil
    } catch {
        let error = error as? CacheError
        #expect(error?.code == code, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(error?.message.isEmpty == false, sourceLocation: sourceLocation)
        return error
    }
}
