// swift-tools-version: 6.1
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
        .executableTarget(name: "Snippets", dependencies: [larder, http]),
        .executableTarget(
            name: "SharedTier", dependencies: [larder, .product(name: "LarderRedisTLS", package: "Larder")]),
        .testTarget(
            name: "ModelLayerTests",
            dependencies: ["ModelLayer", larder, .product(name: "LarderTesting", package: "Larder")]),
    ]
        + [
            "QuickStart", "GettingStarted", "Thumbnails", "Remember", "TwoProcesses", "AppAndWidget",
            "Encrypted",
            "ModelChange1",
            "ModelChange2",
        ].map { .executableTarget(name: $0, dependencies: [larder]) },
    swiftLanguageModes: [.v6])
