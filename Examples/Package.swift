// swift-tools-version: 6.2
import PackageDescription

let larder = Target.Dependency.product(name: "Larder", package: "Larder")
let http = Target.Dependency.product(name: "LarderHTTP", package: "Larder")

// A package of its own: it sees what a user sees.
let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "..")],
    targets: [
        .target(name: "ModelLayer", dependencies: [larder]),
        .executableTarget(name: "APICache", dependencies: [larder, http]),
        .executableTarget(name: "Worker", dependencies: [larder, .product(name: "LarderShared", package: "Larder")]),
        .executableTarget(name: "Snippets", dependencies: [larder, http]),
        .executableTarget(
            name: "Encrypted",
            dependencies: [larder, .target(name: "COpenSSL", condition: .when(platforms: [.linux]))]),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"]), .yum(["openssl-devel"])]),
        // As Xcode 26 creates an app.
        .executableTarget(
            name: "IsolatedApp", dependencies: [larder],
            swiftSettings: [
                .defaultIsolation(MainActor.self), .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
                .enableUpcomingFeature("InferIsolatedConformances"),
            ]),
        .executableTarget(
            name: "SharedTier", dependencies: [larder, .product(name: "LarderRedisTLS", package: "Larder")]),
        .testTarget(
            name: "ModelLayerTests",
            dependencies: ["ModelLayer", larder, .product(name: "LarderTesting", package: "Larder")]),
    ]
        + [
            "QuickStart", "FirstStep", "GettingStarted", "Thumbnails", "Remember", "TwoProcesses", "AppAndWidget",
            "ModelChange1",
            "ModelChange2",
        ].map { .executableTarget(name: $0, dependencies: [larder]) },
    swiftLanguageModes: [.v6])
