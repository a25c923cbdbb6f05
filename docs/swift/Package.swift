// swift-tools-version: 5.9
import PackageDescription

let package = Package(
    name: "TextModels",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "TextModels", targets: ["TextModels"])],
    targets: [
        .target(name: "TextModels", resources: [.copy("characters.txt")]),
        .testTarget(name: "TextModelsTests", dependencies: ["TextModels"]),
    ]
)
