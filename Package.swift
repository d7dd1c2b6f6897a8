// swift-tools-version: 6.1
import Foundation
import PackageDescription

let package = Package(
    name: "Larder",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderCBOR", targets: ["LarderCBOR"]),
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
            resources: [.embedInCode("0001_initial.sql")]),
        // A codec for any program; it knows nothing of the rest.
        .target(name: "LarderCBOR"),
        // The store without types, which takes the place of the present one step by step.
        .target(name: "LarderStore", dependencies: ["LarderSQLite"]),
        .target(name: "Larder", dependencies: ["LarderCBOR", "LarderCSQLite", "LarderSQLite", "LarderMigrations"]),
        .executableTarget(name: "LarderCLI", dependencies: ["Larder"]),

        .target(
            name: "LarderTestSupport", dependencies: ["Larder", "LarderSQLite", "LarderStore"], path: "Tests/Support"),
        // Programs that tests and scripts run: another process, another language.
        .executableTarget(
            name: "larder-test-keys", dependencies: ["Larder", "LarderStore"], path: "Tests/Programs/KeyPrinter"),
        .executableTarget(name: "larder-test-model", dependencies: ["Larder"], path: "Tests/Programs/ModelProgram"),
        .executableTarget(
            name: "larder-test-cbor", dependencies: ["Larder", "LarderTestSupport"], path: "Tests/Programs/CBOREcho"),
        .executableTarget(
            name: "larder-test-rows", dependencies: ["LarderStore", "LarderTestSupport"],
            path: "Tests/Programs/RowsProgram"),
        .testTarget(
            name: "LarderSQLiteTests", dependencies: ["LarderSQLite", "LarderTestSupport"], path: "Tests/LarderSQLite"),
        .testTarget(
            name: "LarderCBORTests", dependencies: ["LarderCBOR", "LarderTestSupport"], path: "Tests/LarderCBOR"),
        .testTarget(
            name: "LarderStoreTests",
            dependencies: ["LarderStore", "LarderSQLite", "LarderTestSupport", "larder-test-rows"],
            path: "Tests/LarderStore"),
        .testTarget(
            name: "LarderCLITests", dependencies: ["Larder", "LarderTestSupport", "LarderCLI"], path: "Tests/LarderCLI"),
        .testTarget(name: "HouseRulesTests", dependencies: ["LarderMigrations"], path: "Tests/HouseRules"),
    ],
    swiftLanguageModes: [.v6])

/// Set to 1 by the Makefile: a warning is an error in our own builds, and never in a user's.
let isStrict = Context.environment["LARDER_STRICT"] == "1"

/// Set to 1 by `make sanitize`: locks are of a kind that the thread sanitizer sees through.
let sanitizesThreads = Context.environment["LARDER_TSAN"] == "1"

var features = ["ExistentialAny", "InternalImportsByDefault"]
// The members of those locks come from a module that the sources do not name.
if !sanitizesThreads { features.append("MemberImportVisibility") }

var settings: [SwiftSetting] = features.map { .enableUpcomingFeature($0) }
if isStrict { settings.append(.unsafeFlags(["-warnings-as-errors"])) }
if sanitizesThreads { settings.append(.define("LARDER_TSAN")) }

/// Set by `make bench-store`: a benchmark of what users cannot see, which their builds do not need.
if Context.environment["LARDER_BENCH"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "larder-bench-store", dependencies: ["LarderStore", "LarderSQLite", "LarderCSQLite"],
            path: "Tests/Benchmarks/Store"))
}

/// Set to 1 for a build of the public module over `LarderStore`, which is to take the place of the present one.
///
/// It has a scratch path of its own, and runs all tests but those of the tool and the house rules. The sources that both
/// have in common are compiled as they are.
let testsOfBoth = ["LarderSQLiteTests", "LarderCBORTests", "LarderStoreTests"]
if Context.environment["LARDER_NEXT"] == "1" {
    let unchanged = ["LarderStore", "LarderCSQLite", "LarderSQLite", "LarderCBOR"]
    package.products = [.library(name: "Larder", targets: ["Larder"])]
    package.targets.removeAll { !unchanged.contains($0.name) && !testsOfBoth.contains($0.name) }
    let coding = [
        "CBOR", "DataTransform", "ValueCodec", "ValueCodec+BuiltIn", "ValueCodec+PropertyList", "ValueFormat",
    ]
    let library =
        ["LarderNext"]
        + ["Memory", "Snapshots", "Errors", "Inspection", "Observation", "Support", "Cache/CacheOptions.swift"].map {
            "Larder/" + $0
        }
        + ["Cache/Cached", "Manager/CacheInfo", "Manager/CachesFolder", "Manager/CacheManager+Version"].map {
            "Larder/\($0).swift"
        } + coding.map { "Larder/Coding/\($0).swift" }
    let support = ["SupportNext", "Support"]
    /// The files of a folder that are not among the sources, of which the package manager would warn.
    func others(than sources: [String], in folder: String) -> [String] {
        let path = Context.packageDirectory + "/" + folder
        let files = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return files.filter { file in
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path + "/" + file, isDirectory: &isFolder)
            return !isFolder.boolValue && !sources.contains { file == $0 || file.hasPrefix($0 + "/") }
        }
    }
    package.targets += [
        .target(
            name: "Larder", dependencies: ["LarderCBOR", "LarderSQLite", "LarderStore"], path: "Sources",
            exclude: others(than: library, in: "Sources") + ["Larder/Memory/EntryRest.swift"], sources: library),
        .target(
            name: "LarderTestSupport", dependencies: ["Larder", "LarderSQLite", "LarderStore"], path: "Tests",
            exclude: others(than: support, in: "Tests"), sources: support),
        .executableTarget(
            name: "larder-test-keys", dependencies: ["Larder", "LarderStore"], path: "Tests/Programs/KeyPrinter"),
        .executableTarget(name: "larder-test-model", dependencies: ["Larder"], path: "Tests/Programs/ModelProgram"),
        .executableTarget(
            name: "larder-test-cache", dependencies: ["Larder", "LarderSQLite", "LarderTestSupport"],
            path: "Tests/Programs/CacheProgram"),
        // What another process does with a store, as it is told.
        .executableTarget(name: "larder-test-peer", dependencies: ["Larder"], path: "Tests/Programs/PeerProgram"),
        .executableTarget(
            name: "larder-test-rows", dependencies: ["LarderStore", "LarderTestSupport"],
            path: "Tests/Programs/RowsProgram"),
        .executableTarget(
            name: "larder-test-cbor", dependencies: ["Larder", "LarderTestSupport"], path: "Tests/Programs/CBOREcho"),
        .testTarget(
            name: "DurabilityTests",
            dependencies: [
                "Larder", "LarderStore", "LarderTestSupport", "larder-test-cache", "larder-test-peer",
                "larder-test-rows",
            ], path: "Tests/Durability"),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "Larder", "LarderSQLite", "LarderStore", "LarderTestSupport", "larder-test-keys", "larder-test-cache",
                "larder-test-peer",
            ], path: "Tests/LarderNext"),
    ]
} else {
    package.targets.removeAll { testsOfBoth.contains($0.name) }
}

/// Set by `make quick`: the only test target of the build.
if let tests = Context.environment["LARDER_TESTS"] {
    precondition(package.targets.contains { $0.name == tests }, "There is no test target \(tests).")
    package.targets.removeAll { $0.type == .test && $0.name != tests }
}

for target in package.targets where target.type != .system {
    target.swiftSettings = settings
    if sanitizesThreads { target.dependencies.append("LarderTSan") }
}
if sanitizesThreads { package.targets.append(.target(name: "LarderTSan", path: "Tests/Sanitizers")) }
