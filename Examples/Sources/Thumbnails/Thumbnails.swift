import Foundation
import Larder

/// Keeps thumbnails of 200 images within limits in memory and on the disk.
@main
struct Thumbnails {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-thumbnails")
        let manager = try CacheManager(url: folder.appendingPathComponent("images.sqlite"))
        let options = CacheOptions(
            memory: MemoryLimits(byteLimit: 128 << 10),
            disk: DiskLimits(sizeLimit: 512 << 10),
            inlineLimit: 2 << 10,
            fileName: { key in "\(key).ppm" })
        let thumbnails: Cache<String, Data> = try await manager.cache(
            named: "thumbnails", version: "1", maxAge: .days(30), options: options)

        var bytes = (images: 0, thumbnails: 0)
        for number in 1...200 {
            let image = Image(width: 320, height: 240, number: number)
            let thumbnail = image.halved().halved().halved()
            bytes = (bytes.images + image.file.count, bytes.thumbnails + thumbnail.file.count)
            try await thumbnails.setValue(thumbnail.file, forKey: "image \(number)")
        }
        print("200 images have \(bytes.images) bytes, and their thumbnails \(bytes.thumbnails).")
        print("On the disk are \(try thumbnails.count) thumbnails of \(try thumbnails.sizeOnDisk) bytes.")
        print("Memory is within its 128 KB: \(thumbnails.memory.totalBytes <= 128 << 10).")

        guard let file = try await thumbnails.fileURL(forKey: "image 200") else { throw CocoaError(.fileNoSuchFile) }
        let head = try Data(contentsOf: file).prefix(9)
        print("The last one is a file of its own, which begins: \(String(decoding: head, as: UTF8.self))")
        let isFirstThere = try await thumbnails.contains("image 1")
        print("The first one is there: \(isFirstThere).")

        // Another limit takes effect at once.
        let events = manager.events
        try await thumbnails.disk.setLimits(DiskLimits(countLimit: 10))
        try await manager.close()
        var evictions: [CacheEvent] = []
        for await event in events { if case .evicted = event.kind { evictions.append(event) } }
        print("A limit of ten evicted \(evictions.count). The last event: \(evictions.last?.message ?? "none")")
    }
}

/// A picture of colours that follow from a number.
struct Image {
    let width: Int
    let height: Int
    /// Three bytes for each point.
    var points: [UInt8]

    init(width: Int, height: Int, number: Int) {
        (self.width, self.height) = (width, height)
        points = []
        for y in 0..<height {
            for x in 0..<width {
                points += [x * number, y * number, x * y / (number + 1)].map { UInt8(truncatingIfNeeded: $0) }
            }
        }
    }

    private init(width: Int, height: Int, points: [UInt8]) {
        (self.width, self.height, self.points) = (width, height, points)
    }

    /// The image with half of its width and of its height.
    func halved() -> Image {
        var half: [UInt8] = []
        for y in 0..<height / 2 {
            for x in 0..<width / 2 {
                for colour in 0..<3 {
                    let first = (2 * y * width + 2 * x) * 3 + colour
                    let sum = [0, 3, width * 3, width * 3 + 3].reduce(0) { $0 + Int(points[first + $1]) }
                    half.append(UInt8(sum / 4))
                }
            }
        }
        return Image(width: width / 2, height: height / 2, points: half)
    }

    /// The image as a file in the format PPM.
    var file: Data { Data("P6 \(width) \(height) 255\n".utf8) + points }
}
