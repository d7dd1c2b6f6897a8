// swift-tools-version: 6.2
import PackageDescription

/// Set to 1 by the Makefile: a warning is an error in our own builds, and never in a user's.
let isStrict = Context.environment["LARDER_STRICT"] == "1"

/// What Apple wants to know of an app that has the library.
///
/// Elsewhere it would make a bundle of resources.
let privacyManifest = "PrivacyInfo.xcprivacy"
#if os(macOS)
let isOnMac = true
#else
let isOnMac = false
#endif

let floors: [SupportedPlatform] = [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)]

/// The tests use what is newer than the floors, such as numbers of 128 bits.
let newest: [SupportedPlatform] = [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)]

let package = Package(
    name: "Larder",
    platforms: isStrict ? newest : floors,
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderCBOR", targets: ["LarderCBOR"]),
        .library(name: "LarderTesting", targets: ["LarderTesting"]),
        .library(name: "LarderShared", targets: ["LarderShared"]),
        .library(name: "LarderHTTP", targets: ["LarderHTTP"]),
        .library(name: "LarderRedis", targets: ["LarderRedis"]),
        .library(name: "LarderRedisTLS", targets: ["LarderRedisTLS"]),
        .executable(name: "larder", targets: ["LarderCLI"]),
    ],
    targets: [
        .systemLibrary(
            name: "LarderCSQLite",
            // On a Mac it would find that of Homebrew, in place of the system's.
            pkgConfig: isOnMac ? nil : "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "LarderCOpenSSL",
            pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        // Atomic words, for Apple's systems alone.
        .systemLibrary(name: "LarderCLocks"),
        // The locks of all the others.
        .target(name: "LarderLocks", dependencies: ["LarderCLocks"]),
        .target(name: "LarderSQLite", dependencies: ["LarderCSQLite"]),
        .target(
            name: "LarderMigrations",
            path: "Migrations",
            resources: [
                .embedInCode("0001_initial.sql"), .embedInCode("0002_opener.sql"), .embedInCode("0003_order.sql"),
                .embedInCode("0004_note.sql"), .embedInCode("0005_key-kind.sql"),
            ]),
        // The store without types: bytes in, bytes out.
        .target(
            name: "LarderStore", dependencies: ["LarderSQLite", "LarderMigrations"],
            exclude: isOnMac ? [] : [privacyManifest], resources: isOnMac ? [.process(privacyManifest)] : []),
        // A codec for any program; it knows nothing of the rest.
        .target(name: "LarderCBOR"),
        .target(name: "Larder", dependencies: ["LarderCBOR", "LarderSQLite", "LarderStore"]),
        // Clocks, stores and faults for the tests of a program, and for our own.
        .target(name: "LarderTesting", dependencies: ["Larder", "LarderSQLite", "LarderStore"]),
        // A cache that several machines share, over any tier.
        .target(name: "LarderShared", dependencies: ["Larder", "LarderStore"]),
        // A cache of HTTP over any client; it has no network code.
        .target(name: "LarderHTTP", dependencies: ["Larder", "LarderShared"]),
        // The shared tier on a server; but for checksums it uses what any program could.
        .target(name: "LarderRedis", dependencies: ["Larder", "LarderShared", "LarderStore"]),
        // Its encrypted connections, for which nothing else needs OpenSSL. Apple's systems have none.
        .target(
            name: "LarderRedisTLS",
            dependencies: [
                "LarderRedis",
                .target(name: "LarderCOpenSSL", condition: .when(platforms: [.linux, .android, .openbsd])),
            ]),
        .executableTarget(name: "LarderCLI", dependencies: ["Larder", "LarderStore"]),

        .target(
            name: "LarderTestSupport", dependencies: ["Larder", "LarderSQLite", "LarderStore", "LarderTesting"],
            path: "Tests/Support"),
        // Programs that tests and scripts run: another process, another language.
        .executableTarget(
            name: "larder-test-keys", dependencies: ["Larder", "LarderStore"], path: "Tests/Programs/KeyPrinter"),
        .executableTarget(
            name: "larder-test-cbor", dependencies: ["Larder", "LarderTestSupport"], path: "Tests/Programs/CBOREcho"),
        .executableTarget(
            name: "larder-test-cache", dependencies: ["Larder", "LarderSQLite", "LarderTestSupport"],
            path: "Tests/Programs/CacheProgram"),
        .executableTarget(
            name: "larder-test-sample", dependencies: ["Larder", "LarderTesting"], path: "Tests/Programs/SampleStore"),
        .executableTarget(
            name: "larder-test-rows", dependencies: ["LarderStore", "LarderTestSupport"],
            path: "Tests/Programs/RowsProgram"),
        // What another process does with a store, as it is told.
        .executableTarget(name: "larder-test-peer", dependencies: ["Larder"], path: "Tests/Programs/PeerProgram"),
        // A node of a shared tier, which works at random.
        .executableTarget(
            name: "larder-test-node", dependencies: ["Larder", "LarderRedis", "LarderTestSupport"],
            path: "Tests/Programs/NodeProgram"),
        // What one call costs. Its C functions stand in for those of the system, so no test target depends on it.
        .target(name: "LarderCostCounter", path: "Tests/Programs/CostCounter"),
        .executableTarget(
            name: "larder-test-costs", dependencies: ["Larder", "LarderCostCounter"],
            path: "Tests/Programs/CostProgram"),
        .testTarget(
            name: "LarderSQLiteTests", dependencies: ["LarderSQLite", "LarderTestSupport"], path: "Tests/LarderSQLite"),
        .testTarget(
            name: "LarderCBORTests", dependencies: ["LarderCBOR", "LarderTestSupport"], path: "Tests/LarderCBOR"),
        .testTarget(
            name: "LarderStoreTests",
            dependencies: ["LarderStore", "LarderSQLite", "LarderTestSupport", "larder-test-rows"],
            path: "Tests/LarderStore"),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "Larder", "LarderSQLite", "LarderStore", "LarderTestSupport", "larder-test-keys", "larder-test-cache",
                "larder-test-peer",
            ], path: "Tests/Larder"),
        .testTarget(
            name: "DurabilityTests",
            dependencies: [
                "Larder", "LarderStore", "LarderTestSupport", "larder-test-cache", "larder-test-peer",
                "larder-test-rows", "LarderCLI",
            ], path: "Tests/Durability"),
        .testTarget(
            name: "LarderCLITests", dependencies: ["Larder", "LarderTestSupport", "LarderCLI"], path: "Tests/LarderCLI"),
        .testTarget(
            name: "LarderTestingTests", dependencies: ["Larder", "LarderTesting"], path: "Tests/LarderTesting"),
        .testTarget(
            name: "LarderSharedTests",
            dependencies: ["Larder", "LarderShared", "LarderStore", "LarderTesting", "LarderTestSupport"],
            path: "Tests/LarderShared"),
        .testTarget(
            name: "LarderRedisTests",
            dependencies: [
                "Larder", "LarderRedis", "LarderRedisTLS", "LarderTesting", "LarderTestSupport", "larder-test-node",
            ],
            path: "Tests/LarderRedis"),
        .testTarget(
            name: "LarderHTTPTests",
            dependencies: ["Larder", "LarderHTTP", "LarderShared", "LarderTesting", "LarderTestSupport"],
            path: "Tests/HTTP", exclude: ["README.md"]),
        .testTarget(name: "HouseRulesTests", dependencies: ["LarderMigrations"], path: "Tests/HouseRules"),
    ],
    swiftLanguageModes: [.v6])

/// Set to 1 by `make sanitize`: locks are of a kind that the thread sanitizer sees through.
let sanitizesThreads = Context.environment["LARDER_TSAN"] == "1"

var settings: [SwiftSetting] = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"].map {
    .enableUpcomingFeature($0)
}
if isStrict { settings.append(.unsafeFlags(["-warnings-as-errors"])) }
// CI uses no debugger, and the information for it takes an eighth of the build.
if isStrict, Context.environment["CI"] == "true" { settings.append(.unsafeFlags(["-Xfrontend", "-gnone"])) }
if sanitizesThreads { settings.append(.define("LARDER_TSAN")) }

/// Set by `make quick`: the only test target of the build.
if let tests = Context.environment["LARDER_TESTS"] {
    precondition(package.targets.contains { $0.name == tests }, "There is no test target \(tests).")
    package.targets.removeAll { $0.type == .test && $0.name != tests }
}

for target in package.targets where target.type != .system {
    target.swiftSettings = settings
    if !["LarderLocks", "LarderCostCounter"].contains(target.name) { target.dependencies.append("LarderLocks") }
}
