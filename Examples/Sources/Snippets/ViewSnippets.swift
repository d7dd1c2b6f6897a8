#if canImport(SwiftUI)
import Larder
import SwiftUI

struct Title: View {
    @State var title: ObservedValue<Int, String>
    var body: some View { Text(title.value ?? "…") }
}
#endif
