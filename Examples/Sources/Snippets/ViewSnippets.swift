#if canImport(SwiftUI)
import Larder
import SwiftUI

private let api = API()

struct Title: View {
    @State var title: ObservedValue<Int, String>
    var body: some View { Text(title.value ?? "…") }
}

struct TitleView: View {
    @State var headline: ObservedValue<Int, String>
    var body: some View { Text(headline.value ?? "…") }
}

struct ArticleView: View {
    let id: Int
    let articles: Cache<Int, Article>
    @State private var article: Article?

    var body: some View {
        Text((article ?? articles.memory[id])?.title ?? "…")
            .task(id: id) {
                article = nil
                article = try? await articles.value(forKey: id) { try await api.article($0) }
            }
    }
}

@MainActor @Observable
final class Model {
    private(set) var caches: Caches?

    func start() async {
        do { caches = try await Caches(CacheManager.open(name: "MyApp")) } catch { print(error) }
    }
}
#endif
