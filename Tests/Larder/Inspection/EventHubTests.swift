import Foundation
import Larder
import Testing

struct EventHubTests {
    private func event(_ number: Int) -> CacheEvent {
        CacheEvent(.recovered(setAside: URL(fileURLWithPath: "/\(number)")), message: "\(number)")
    }

    @Test func `every stream gets every event from its beginning on`() async {
        let hub = EventHub()
        let first = hub.stream()
        hub.send(event(1))
        let second = hub.stream()
        hub.send(event(2))
        hub.finish()
        #expect(await first.map(\.message).collected() == ["1", "2"])
        #expect(await second.map(\.message).collected() == ["2"])
    }

    @Test func `what happened before anybody listened comes first, to the first`() async {
        let hub = EventHub()
        hub.send(event(1))
        hub.send(event(2))
        let first = hub.stream()
        let second = hub.stream()
        hub.send(event(3))
        hub.finish()
        #expect(await first.map(\.message).collected() == ["1", "2", "3"])
        #expect(await second.map(\.message).collected() == ["3"])
    }

    @Test func `of what happened before anybody listened the newest thousand wait`() async {
        let hub = EventHub()
        for number in 1...3500 { hub.send(event(number)) }
        let stream = hub.stream()
        hub.finish()
        #expect(await stream.map(\.message).collected() == (2501...3500).map(String.init))
    }

    @Test func `the newest thousand wait, and what went lost is counted`() async {
        let hub = EventHub()
        let stream = hub.stream()
        for number in 1...2500 { hub.send(event(number)) }
        hub.finish()
        let events = await stream.collected()
        #expect(events.map(\.message) == (1501...2500).map(String.init))
        #expect(events.last?.lostBefore == 1499)
    }

    @Test func `a dropped stream is forgotten`() {
        let hub = EventHub()
        do { _ = hub.stream() }
        hub.send(event(1))
        #expect(hub.listenerCount == 0)
    }
}

extension AsyncSequence where Failure == Never {
    func collected() async -> [Element] {
        var elements: [Element] = []
        for await element in self { elements.append(element) }
        return elements
    }
}
