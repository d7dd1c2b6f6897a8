/// The pages of a database as of the last commit, read without SQLite: the main file, and over it what the log has.
///
/// Nothing in a page is believed unchecked, so a damaged one costs what is on it and no more.
package struct DatabasePages: ~Copyable {
    private let main: RawFile
    private let log: LogFile?
    private let contents: LogContents

    /// The number of pages; those at the end may be empty.
    let count: UInt32

    /// - Parameters:
    ///   - main: The main file.
    ///   - log: The log, if there is one.
    ///   - contents: Which pages the log has.
    package init(main: consuming RawFile, log: consuming LogFile?, contents: LogContents) {
        let inMain = UInt32(clamping: main.size / Int64(Connection.pageSize))
        let highest = contents.frames.keys.max() ?? 0
        // What is behind the end that the last commit has set is older than that commit.
        count = contents.pageCount > 0 ? min(contents.pageCount, max(inMain, highest)) : inMain
        self.main = main
        self.log = log
        self.contents = contents
    }

    /// Fills `bytes` with the page `number`.
    func read(_ number: UInt32, into bytes: inout [UInt8]) throws(SQLiteError) {
        if let frame = contents.frames[number], log != nil {
            try log!.read(pageOf: frame, into: &bytes)
        } else {
            try main.read(into: &bytes, at: (Int64(number) - 1) * Int64(Connection.pageSize))
        }
    }

    /// The frames that may hold a newer form of the page `number`, some bytes of which are wrong.
    func doubtful(_ number: UInt32) -> [Int] {
        contents.doubtful.isEmpty ? [] : contents.doubtful.filter { $0.page == number }.map(\.frame)
    }

    /// Fills `bytes` with the page in a doubtful frame.
    func read(doubtful frame: Int, into bytes: inout [UInt8]) throws(SQLiteError) {
        if log != nil { try log!.read(pageOf: frame, into: &bytes) }
    }
}

/// What is known of each page before its records are read.
///
/// A page says what it holds, but not whether it is in use: an empty one keeps its old contents. Three places tell that,
/// each of which may be damaged: the pointer map, which names the use of each page; the list of free pages; and the
/// pages above it in its tree. One of them alone is overruled by the others.
struct PageUse {
    private var flags: [UInt8]
    private static let (kindMask, isFree, isReferenced): (UInt8, UInt8, UInt8) = (0x07, 0x08, 0x10)

    /// What the pointer map says a page is.
    private enum Kind {
        static let (unknown, root, free, firstOverflow, overflow, node): (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8) =
            (0, 1, 2, 3, 4, 5)
    }

    /// Reads the pointer map, the list of free pages and every page that has others below it.
    init(_ pages: borrowing DatabasePages) throws(SQLiteError) {
        flags = [UInt8](repeating: 0, count: Int(pages.count) + 1)
        var bytes = [UInt8](repeating: 0, count: Connection.pageSize)
        try readMap(pages, &bytes)
        try readFreeList(pages, &bytes)
        try readReferences(pages, &bytes)
    }

    /// Whether the records of the page `number` count, if it has any.
    func isLive(_ number: UInt32) -> Bool {
        if number == 1 { return true }
        if Self.isMap(number) { return false }
        let flags = flags[Int(number)]
        let (isFree, isReferenced) = (flags & Self.isFree != 0, flags & Self.isReferenced != 0)
        switch flags & Self.kindMask {
        case Kind.root, Kind.node: return true
        case Kind.free: return isReferenced && !isFree
        case Kind.firstOverflow, Kind.overflow: return isReferenced
        default: return isReferenced || !isFree
        }
    }

    // MARK: The pointer map

    /// The pages that one page of the map tells of: five bytes for each.
    private static let pagesPerMap = UInt32(Connection.pageSize / 5)

    /// The page that holds the byte at which SQLite places its locks is never used.
    private static let lockPage = UInt32(0x4000_0000 / Connection.pageSize + 1)

    /// The page of the map that tells of `number`.
    private static func map(of number: UInt32) -> UInt32 {
        let map = (number - 2) / (pagesPerMap + 1) * (pagesPerMap + 1) + 2
        return map == lockPage ? map + 1 : map
    }

    static func isMap(_ number: UInt32) -> Bool {
        number >= 2 && (map(of: number) == number || number == lockPage)
    }

    private mutating func readMap(
        _ pages: borrowing DatabasePages, _ bytes: inout [UInt8]
    ) throws(SQLiteError) {
        var current: UInt32 = 0
        guard pages.count >= 3 else { return }
        for number in 3...pages.count where !Self.isMap(number) {
            let map = Self.map(of: number)
            guard number > map, map <= pages.count else { continue }
            if map != current {
                try pages.read(map, into: &bytes)
                current = map
            }
            let offset = 5 * Int(number - map - 1)
            guard offset <= bytes.count - 5 else { continue }
            let (kind, parent) = (bytes[offset], bytes.word(offset + 1))
            let hasParent = kind >= Kind.firstOverflow
            let isValid =
                (Kind.root...Kind.node).contains(kind)
                && (hasParent ? parent > 0 && parent <= pages.count && parent != number : parent == 0)
            flags[Int(number)] = isValid ? kind : Kind.unknown
        }
    }

    // MARK: The list of free pages

    private mutating func readFreeList(
        _ pages: borrowing DatabasePages, _ bytes: inout [UInt8]
    ) throws(SQLiteError) {
        guard pages.count >= 1 else { return }
        try pages.read(1, into: &bytes)
        var trunk = bytes.word(32)
        while trunk > 1, trunk <= pages.count, flags[Int(trunk)] & Self.isFree == 0 {
            try pages.read(trunk, into: &bytes)
            // A list that leads to a page of a tree is no list.
            guard flags[Int(trunk)] & Self.kindMask == Kind.free || bytes[0] == 0 else { return }
            flags[Int(trunk)] |= Self.isFree
            let leaves = min(Int(bytes.word(4)), Connection.pageSize / 4 - 2)
            for leaf in 0..<leaves {
                let number = bytes.word(8 + 4 * leaf)
                if number > 1, number <= pages.count { flags[Int(number)] |= Self.isFree }
            }
            trunk = bytes.word(0)
        }
    }

    // MARK: Pages that name others

    private mutating func readReferences(
        _ pages: borrowing DatabasePages, _ bytes: inout [UInt8]
    ) throws(SQLiteError) {
        guard pages.count >= 1 else { return }
        for number in 1...pages.count where number == 1 || !Self.isMap(number) {
            guard flags[Int(number)] & Self.kindMask != Kind.free else { continue }
            try pages.read(number, into: &bytes)
            guard let node = TreePage(bytes, isFirst: number == 1), node.kind.isInterior else { continue }
            mark(node.rightChild, pages.count)
            for cell in node.cells(in: bytes) { mark(bytes.word(cell), pages.count) }
        }
    }

    private mutating func mark(_ number: UInt32, _ count: UInt32) {
        if number > 1, number <= count { flags[Int(number)] |= Self.isReferenced }
    }
}

/// The head of a page of a table or an index.
struct TreePage {
    enum Kind: UInt8 {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13

        var isInterior: Bool { self == .indexInterior || self == .tableInterior }
    }

    let kind: Kind
    let rightChild: UInt32

    /// Where the places of the cells are listed, and how many there are.
    private let list: Int
    private let cellCount: Int

    /// - Parameter isFirst: Whether it is the first page of the file, which begins with the file's header.
    init?(_ bytes: [UInt8], isFirst: Bool) {
        let start = isFirst ? 100 : 0
        guard bytes.count == Connection.pageSize, let kind = Kind(rawValue: bytes[start]) else { return nil }
        self.kind = kind
        rightChild = kind.isInterior ? bytes.word(start + 8) : 0
        list = start + (kind.isInterior ? 12 : 8)
        cellCount = min(bytes.half(start + 3), (bytes.count - list) / 2)
    }

    /// Where the cells begin, of those that are in the page at all.
    func cells(in bytes: [UInt8]) -> [Int] {
        var cells: [Int] = []
        cells.reserveCapacity(cellCount)
        for index in 0..<cellCount {
            let cell = bytes.half(list + 2 * index)
            if cell >= list + 2 * cellCount, cell <= bytes.count - 4 { cells.append(cell) }
        }
        return cells
    }
}
