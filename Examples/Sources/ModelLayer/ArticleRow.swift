#if canImport(SwiftUI)
import SwiftUI

/// A row of a list: the title of an article, at once if memory has it.
public struct ArticleRow: View {
    private let id: Int
    private let repository: ArticleRepository
    @State private var article: Article?

    /// Creates a row.
    public init(_ id: Int, _ repository: ArticleRepository) { (self.id, self.repository) = (id, repository) }

    /// The title, and an old one while a new one loads.
    public var body: some View {
        Text((article ?? repository.known(id))?.title ?? "…")
            .task(id: id) {
                article = nil
                article = try? await repository.article(id)
            }
    }
}
#endif
