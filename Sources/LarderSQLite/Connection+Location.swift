internal import LarderCSQLite

extension Connection {
    /// The database to open, and the way to open it.
    package struct Location: Sendable {
        let name: String
        let flags: Int32

        /// A database in memory that no other connection can see.
        package static let memory = Location(
            name: ":memory:",
            flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX)

        /// An existing file, to read and write.
        ///
        /// A symbolic link is not followed.
        package static func file(_ path: String) -> Location {
            Location(name: path, flags: SQLITE_OPEN_READWRITE | common)
        }

        /// An existing file of which nothing changes on disk, including the log's shared memory.
        package static func readOnlyFile(_ path: String) -> Location {
            Location(name: uri(path, "readonly_shm=1"), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | common)
        }

        /// An existing file without its log and without locks: only for a file that no process writes.
        package static func immutableFile(_ path: String) -> Location {
            Location(name: uri(path, "immutable=1"), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | common)
        }

        private static let common =
            SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE

        private static func uri(_ path: String, _ query: String) -> String {
            var name = "file:"
            for byte in path.utf8 {
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    name.unicodeScalars.append(Unicode.Scalar(byte))
                default:
                    let digits = String(byte, radix: 16, uppercase: true)
                    name += "%" + (digits.count == 1 ? "0" : "") + digits
                }
            }
            return name + "?" + query
        }
    }
}
