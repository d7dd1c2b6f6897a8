import Foundation
import LarderCBOR
import Testing

/// Classes that write into one container, and into one inside the other.
struct CBORClassTests {
    class Base: Codable {
        var name: String
        var id: Int
        init(name: String, id: Int) {
            self.name = name
            self.id = id
        }
    }

    final class SharesContainer: Base {
        private enum CodingKeys: String, CodingKey { case name, extra }
        var extra: [String]
        var ownName: String
        init(name: String, id: Int, extra: [String], ownName: String) {
            self.extra = extra
            self.ownName = ownName
            super.init(name: name, id: id)
        }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            extra = try container.decode([String].self, forKey: .extra)
            ownName = try container.decode(String.self, forKey: .name)
            try super.init(from: decoder)
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(ownName, forKey: .name)
            try container.encode(extra, forKey: .extra)
            try super.encode(to: encoder)
        }
    }

    final class UsesSuper: Base {
        private enum CodingKeys: String, CodingKey { case name, extra }
        var extra = 5
        var ownName = "own"
        override init(name: String, id: Int) { super.init(name: name, id: id) }
        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            try super.init(from: container.superDecoder())
            ownName = try container.decode(String.self, forKey: .name)
            extra = try container.decode(Int.self, forKey: .extra)
        }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try super.encode(to: container.superEncoder())
            try container.encode(ownName, forKey: .name)
            try container.encode(extra, forKey: .extra)
        }
    }

    @Test func `a class hierarchy in one container comes back`() throws {
        let bytes = try CBOREncoder().encode([SharesContainer(name: "base", id: 7, extra: ["x"], ownName: "own")])
        let back = try #require(try CBORDecoder().decode([SharesContainer].self, from: bytes).first)
        // Both write "name", the superclass last.
        #expect(back.name == "base" && back.ownName == "base" && back.id == 7 && back.extra == ["x"])
    }

    @Test func `a class hierarchy with a super encoder comes back`() throws {
        let bytes = try CBOREncoder().encode([UsesSuper(name: "base", id: 7)])
        let back = try #require(try CBORDecoder().decode([UsesSuper].self, from: bytes).first)
        #expect(back.name == "base" && back.ownName == "own" && back.id == 7 && back.extra == 5)
    }
}
