import Dispatch

/// Runs `body` once for each of `count` threads, all at once, and gives what they threw.
package func errors(ofThreads count: Int, _ body: @Sendable (Int) throws -> Void) -> [String] {
    let errors = Told<String>()
    DispatchQueue.concurrentPerform(iterations: count) { thread in
        do { try body(thread) } catch { errors.add("\(error)") }
    }
    return errors.all
}
