// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "Larder",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .executable(name: "larder", targets: ["LarderCLI"]),
    ],
    targets: [
        .systemLibrary(
            name: "LarderCSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite3"])]),
        .target(name: "LarderSQLite", dependencies: ["LarderCSQLite"]),
        .target(
            name: "LarderMigrations",
            path: "Migrations",
            resources: [.embedInCode("0001_create-tables.sql")]),
        .target(name: "Larder", dependencies: ["LarderSQLite", "LarderMigrations"]),
        .executableTarget(name: "LarderCLI", dependencies: ["Larder"]),

        .testTarget(name: "LarderSQLiteTests", dependencies: ["LarderSQLite"], path: "Tests/LarderSQLite"),
        .testTarget(
            name: "LarderTests", dependencies: ["Larder", "larder-test-keys"], path: "Tests/Larder"),
        // Programs that tests and scripts run: another process, another language.
        .executableTarget(name: "larder-test-keys", dependencies: ["Larder"], path: "Tests/Programs/KeyPrinter"),
        .executableTarget(name: "larder-test-cbor", dependencies: ["Larder"], path: "Tests/Programs/CBOREcho"),
    ],
    swiftLanguageModes: [.v6])

/// Set to 1 by the Makefile: a warning is an error in our own builds, and never in a user's.
let isStrict = Context.environment["LARDER_STRICT"] == "1"

for target in package.targets where target.type != .system {
    target.swiftSettings =
        ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"].map { .enableUpcomingFeature($0) }
        + (isStrict ? [.unsafeFlags(["-warnings-as-errors"])] : [])
}
