import Foundation
import Larder
import LarderTestSupport
import Testing

/// Names, the readable part of which is anybody's text.
struct BlobNameTests {
    let folder: TemporaryFolder
    let blobs: BlobFolder

    init() throws { (folder, blobs) = try BlobFolder.inTemporaryFolder() }

    @Test func `the readable part stands before our own, and the extension behind it`() throws {
        let reference = try blobs.write(noise(10), label: BlobLabel(suggestion: "Zürich station.tar.png"))
        #expect(reference.name.wholeMatch(of: /[0-9a-f]{2}\/Zürich station\.tar-[0-9a-f]{24}\.png/) != nil)
        #expect(try blobs.bytes(reference) == noise(10))
        // And keeps it when the file is recycled.
        try blobs.giveUp(reference.name)
        let next = try blobs.write(noise(10), label: BlobLabel(head: "next", fileExtension: "jpg"))
        #expect(next.name.wholeMatch(of: /[0-9a-f]{2}\/next-[0-9a-f]{24}\.jpg/) != nil)
        #expect(blobs.poolFigures.taken == 1)
    }

    // case 64
    @Test func `one suggestion for two values makes two files`() throws {
        let label = BlobLabel(suggestion: "same.txt")
        let (a, b) = try (blobs.write(noise(10, 1), label: label), blobs.write(noise(10, 2), label: label))
        #expect(a.name != b.name)
        #expect(try blobs.bytes(a) == noise(10, 1))
        #expect(try blobs.bytes(b) == noise(10, 2))
    }

    // case 65
    @Test(
        arguments: [
            "../x", "/etc/x", "..", ".", ".hidden", "a/../../../../x", String(repeating: "n", count: 300), "a\u{0}b",
            "a\nb\u{1B}[2J", "../x.../../y", "x./etc/passwd", "\u{202E}gpj.exe", "a.", "C:\\x", "-rf", "",
            String(repeating: "é👩‍👩‍👧", count: 100), "e" + String(repeating: "\u{301}", count: 1000),
            "x." + String(repeating: "ü", count: 300),
        ])
    func `whatever is suggested, the file lies in the folder and can be read`(suggestion: String) throws {
        for label in [
            BlobLabel(suggestion: suggestion), BlobLabel(head: suggestion, fileExtension: suggestion),
            BlobLabel(head: "", fileExtension: suggestion),
        ] {
            let reference = try blobs.write(noise(10), label: label)
            #expect(try blobs.bytes(reference) == noise(10))
            #expect(try blobs.files == [reference.name])
            #expect(try folder.names == ["store.files"])
            let file = reference.name.utf8.dropFirst(3)
            #expect(file.count <= 255)
            #expect(!file.contains { $0 < 0x20 || $0 == UInt8(ascii: "/") })
            #expect(file.first != UInt8(ascii: ".") && file.first != UInt8(ascii: "-"))
            try FileSystem.remove(blobs.path)
        }
    }

    // case 65
    @Test(
        arguments: [
            "../outside", "/outside", "3f/../../outside", "3f/..", "3f/", "3f/.x", "3f", "", "/", "..", "3f/a/b",
            "3F/x",
            "3g/x", "3f0/x", "3f/a\u{0}", "pool-0123/1", "3f/" + String(repeating: "x", count: 256), "3f//x",
        ])
    func `a name in a row that is none of ours is damage, and leads nowhere`(name: String) throws {
        let kept = try blobs.write(noise(10))
        let outside = folder("outside")
        try Data("kept".utf8).write(to: outside)
        let checksum = try blobs.write(Data("kept".utf8)).checksum
        #expect(try blobs.read(name, size: 4, checksum: checksum).isDamaged)
        #expect(blobs.path(of: name) == nil)
        #expect(try blobs.handOut(name) == nil)
        try blobs.giveUp(name)
        #expect(try Data(contentsOf: outside) == Data("kept".utf8))
        #expect(try blobs.bytes(kept) == noise(10))
    }
}
