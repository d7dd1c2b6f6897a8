// swift-tools-version: 6.1
import PackageDescription

// A package of its own: it sees what a user sees.
let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "..")],
    targets: [
        .executableTarget(name: "QuickStart", dependencies: [.product(name: "Larder", package: "Larder")]),
        .executableTarget(name: "ModelChange1", dependencies: [.product(name: "Larder", package: "Larder")]),
        .executableTarget(name: "ModelChange2", dependencies: [.product(name: "Larder", package: "Larder")]),
        .executableTarget(name: "Snippets", dependencies: [.product(name: "Larder", package: "Larder")]),
    ],
    swiftLanguageModes: [.v6])
