/// What a look at a log has found, compared with the main file.
package enum LogFinding: Sendable {
    /// SQLite reads it as it was written, or as far as a loss of power let it be written.
    case sound(LogContents)

    /// Single bytes are wrong, and the checksums tell the right ones; with these it is sound.
    case correctable([LogCorrection], LogContents)

    /// It is damaged, and all of it is in the main file.
    case copied

    /// It is damaged, and a part of what is behind the damage is in the main file, so that the pages before the damage
    /// would be older than those.
    case mixed(LogContents)

    /// The pages that the log has of the database.
    package var contents: LogContents {
        switch self {
        case .sound(let contents), .correctable(_, let contents), .mixed(let contents): contents
        case .copied: LogContents()
        }
    }
}

/// Which pages a log has.
package struct LogContents: Sendable, Equatable {
    /// The last committed frame of each page.
    var frames: [UInt32: Int] = [:]

    /// Frames whose checksum is wrong: some bytes of theirs are, the page's number perhaps.
    var doubtful: [Doubtful] = []

    /// The number of pages of the database after the last commit; 0 if the log has none.
    var pageCount: UInt32 = 0

    /// A frame that may hold a page of this number.
    struct Doubtful: Sendable, Equatable {
        let page: UInt32
        let frame: Int
    }

    package init() {}
}
