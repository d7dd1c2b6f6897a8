// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as a user's program is: what is measured is what a user of the library gets.
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "..")],
    targets: [
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CAllocations"),
        .executableTarget(
            name: "bench",
            dependencies: [
                "CAllocations", "CSQLite", .product(name: "Larder", package: "Larder"),
                .product(name: "LarderHTTP", package: "Larder"), .product(name: "LarderRedisTLS", package: "Larder"),
            ]),
    ],
    swiftLanguageModes: [.v6])
