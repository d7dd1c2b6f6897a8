#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The memory of tables, zeroed.
///
/// Large arrays come from the system and go back to it at once. An allocator would keep the array that a table has
/// outgrown, and that hole counts in no limit: it made a cache 10 % larger than its limit on bytes.
///
/// Safety: the caller frees each array once, with the count that it asked for, and reads no element as another type.
@usableFromInline
enum TableMemory {
    private static var leastBytesFromSystem: Int { 128 << 10 }

    @usableFromInline
    static func allocate<Element: ~Copyable>(_ count: Int) -> UnsafeMutablePointer<Element> {
        let bytes = count * MemoryLayout<Element>.stride
        guard bytes >= leastBytesFromSystem else {
            let memory = UnsafeMutableRawPointer.allocate(
                byteCount: bytes, alignment: 64)
            memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
            return memory.bindMemory(to: Element.self, capacity: count)
        }
        guard let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            memory != MAP_FAILED
        else { preconditionFailure("There is no memory left for a memory cache to grow.") }
        return memory.bindMemory(to: Element.self, capacity: count)
    }

    @usableFromInline
    static func free<Element: ~Copyable>(_ array: UnsafeMutablePointer<Element>, _ count: Int) {
        let bytes = count * MemoryLayout<Element>.stride
        if bytes >= leastBytesFromSystem {
            munmap(array, bytes)
        } else {
            UnsafeMutableRawPointer(array).deallocate()
        }
    }

    /// Makes an array of plain elements longer: Linux gives its pages another address, and copies nothing.
    @usableFromInline
    static func grow<Element>(
        _ array: UnsafeMutablePointer<Element>, from count: Int, to newCount: Int
    ) -> UnsafeMutablePointer<Element> {
        let (bytes, newBytes) = (count * MemoryLayout<Element>.stride, newCount * MemoryLayout<Element>.stride)
        guard bytes >= leastBytesFromSystem, let remap,
            let memory = remap(array, bytes, newBytes, mayMove), memory != MAP_FAILED
        else { return resize(array, used: count, from: count, to: newCount) }
        return memory.bindMemory(to: Element.self, capacity: newCount)
    }

    /// Moves the first plain elements of an array into one of another length.
    static func resize<Element>(
        _ array: UnsafeMutablePointer<Element>, used: Int, from count: Int, to newCount: Int
    ) -> UnsafeMutablePointer<Element> {
        let resized: UnsafeMutablePointer<Element> = allocate(newCount)
        memcpy(resized, array, used * MemoryLayout<Element>.stride)
        free(array, count)
        return resized
    }

    private typealias Remap =
        @convention(c) (UnsafeMutableRawPointer, Int, Int, CInt) -> UnsafeMutableRawPointer?

    private static let mayMove: CInt = 1

    // Found by name: Swift does not import functions of a variable number of arguments. The thread sanitizer does not know
    // what it does.
    #if os(Linux) && !LARDER_TSAN
    private static let remap = dlsym(nil, "mremap").map { unsafeBitCast($0, to: Remap.self) }
    #else
    private static let remap: Remap? = nil
    #endif
}
