import Foundation
import Larder
import LarderTestSupport
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
        #expect(events.map(\.lostBefore) == Array(500...1499))
    }

    @Test func `what goes lost while a reader is slow is counted by the later events`() async {
        let hub = EventHub()
        let stream = hub.stream()
        var reader = stream.makeAsyncIterator()
        for number in 1...1000 { hub.send(event(number)) }
        for number in 1...10 {
            let next = await reader.next()
            #expect(next?.message == "\(number)" && next?.lostBefore == 0)
        }
        for number in 1001...1013 { hub.send(event(number)) }
        let next = await reader.next()
        #expect(next?.message == "14" && next?.lostBefore == 0)
        var last = next
        for _ in 15...1013 { last = await reader.next() }
        #expect(last?.message == "1013" && last?.lostBefore == 2)
    }

    @Test func `a reader that waits is woken by an event, by the end, or when its task is cancelled`() async throws {
        let hub = EventHub()
        let streams = (0..<3).map { _ in hub.stream() }
        let read = Locked<[String]>([])
        let tasks = streams.map { stream in
            Task {
                for await event in stream { read.change { $0.append(event.message) } }
            }
        }
        hub.send(event(1))
        try await Waiting.until { read.value.count == 3 }
        tasks[0].cancel()
        await tasks[0].value
        #expect(hub.listenerCount == 2)
        hub.send(event(2))
        try await Waiting.until { read.value.count == 5 }
        hub.finish()
        for task in tasks { await task.value }
        #expect(read.value.sorted() == ["1", "1", "1", "2", "2"])
    }

    @Test func `two readers of one stream share its events`() async throws {
        let hub = EventHub()
        let stream = hub.stream()
        let read = Locked<[String]>([])
        let tasks = (0..<2).map { _ in
            Task {
                for await event in stream { read.change { $0.append(event.message) } }
            }
        }
        for number in 1...100 { hub.send(event(number)) }
        hub.finish()
        for task in tasks { await task.value }
        #expect(read.value.compactMap { Int($0) }.sorted() == Array(1...100))
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
