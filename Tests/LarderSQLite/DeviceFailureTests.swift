import LarderCSQLite
import LarderLocks
import LarderSQLite
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Reads that the device fails, in the place of SQLite's own system call.
@Suite(.serialized) struct DeviceFailureTests {
    @Test(arguments: [EIO, ENXIO, ERANGE])
    func `a read that the device fails is no damage, wherever it happens`(code: Int32) throws {
        let file = try DatabaseFile()
        do {
            var writer = try file.open(.writer)
            for _ in 0..<20 { try writer.insert(bytes: 3000) }
        }
        try FailingReads.use {
            var failures = 0
            for number in 1...40 {
                var reader = try file.open(.reader)
                let (result, hasFailed) = FailingReads.failing(number, with: code) { () -> Result<Int64, SQLiteError> in
                    do throws(SQLiteError) { return .success(try reader.count()) } catch { return .failure(error) }
                }
                switch result {
                case .success(let count): #expect(count == 20)
                case .failure(let error):
                    #expect(!error.isCorruption, "read \(number): \(error)")
                    #expect(.inputOutput ~= error.code)
                }
                if hasFailed { failures += 1 }
                // Whatever came of it, the next read finds everything.
                #expect(try reader.count() == 20)
            }
            #expect(failures > 3)
        }
    }

    @Test func `damage that is found after a failed read is damage`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        var guardian = try file.open(.guardian)
        for _ in 0..<20 { try writer.insert(bytes: 3000) }
        #expect(try writer.checkpoint(guardedBy: &guardian))
        try FailingReads.use {
            var reader = try file.open(.reader)
            let (_, hasFailed) = FailingReads.failing(2, with: EIO) { () -> Bool in
                do throws(SQLiteError) { return try reader.count() > 0 } catch { return false }
            }
            #expect(hasFailed)
            try writer.execute("PRAGMA writable_schema = ON")
            try writer.execute("UPDATE sqlite_schema SET rootpage = 1000 WHERE name = 't'")
            // So that the reader looks at it again.
            try writer.execute("PRAGMA schema_version = 1000")
            let error = #expect(throws: SQLiteError.self) { try reader.count() }
            #expect(error?.isCorruption == true)
        }
    }
}

/// A `pread` that fails when this thread has asked for it.
private enum FailingReads {
    private typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, Int) -> Int

    private static let original = Atomic<UInt>(0)
    private static let thread = Atomic<UInt>(0)
    private static let left = Atomic(0)
    private static let code = Atomic<Int32>(0)

    private static var ownThread: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: pthread_self())
        #else
        UInt(pthread_self())
        #endif
    }

    private static let failingRead: Read = { descriptor, bytes, count, offset in
        if FailingReads.thread.load(ordering: .relaxed) == FailingReads.ownThread {
            if FailingReads.left.subtract(1, ordering: .relaxed).newValue == 0 {
                errno = FailingReads.code.load(ordering: .relaxed)
                return -1
            }
        }
        let original = unsafeBitCast(FailingReads.original.load(ordering: .acquiring), to: Read.self)
        return original(descriptor, bytes, count, offset)
    }

    /// Puts ours in the place of SQLite's while `body` runs.
    static func use(_ body: () throws -> Void) throws {
        let vfs = try #require(sqlite3_vfs_find(nil))
        let names: [String] = ["pread", "pread64"]
        let name = try #require(names.first { vfs.pointee.xGetSystemCall(vfs, $0) != nil })
        let call = try #require(vfs.pointee.xGetSystemCall(vfs, name))
        original.store(UInt(bitPattern: unsafeBitCast(call, to: Int.self)), ordering: .releasing)
        let ours = unsafeBitCast(failingRead, to: sqlite3_syscall_ptr.self)
        #expect(vfs.pointee.xSetSystemCall(vfs, name, ours) == SQLITE_OK)
        defer { _ = vfs.pointee.xSetSystemCall(vfs, name, nil) }
        try body()
    }

    /// Lets the read `number` of this thread fail with `error`; whether `body` came to it.
    static func failing<R>(_ number: Int, with error: Int32, _ body: () -> R) -> (R, hasFailed: Bool) {
        code.store(error, ordering: .relaxed)
        left.store(number, ordering: .relaxed)
        thread.store(ownThread, ordering: .relaxed)
        defer { thread.store(0, ordering: .relaxed) }
        let result = body()
        return (result, left.load(ordering: .relaxed) <= 0)
    }
}
