/// The live incarnations of a store.
struct LiveIncarnations {
    private var byName: [ExactName: Incarnation] = [:]
    /// The declaration that was asked for last.
    private var last: (declaration: CacheDeclaration, incarnation: Incarnation)?

    var values: Dictionary<ExactName, Incarnation>.Values { byName.values }

    /// The incarnations by id, which damage can have given to two.
    var byID: [Int64: Incarnation] { [Int64: Incarnation](values.map { ($0.id, $0) }) { first, _ in first } }

    /// Returns the incarnation with an id; nil if there is none.
    func incarnation(withID id: Int64) -> Incarnation? { values.first { $0.id == id } }

    subscript(name: ExactName) -> Incarnation? {
        get { byName[name] }
        set { (byName[name], last) = (newValue, nil) }
    }

    /// Returns the incarnation of a declaration; nil if the handle is superseded.
    mutating func incarnation(of declaration: CacheDeclaration) -> Incarnation? {
        if let last, last.declaration === declaration { return last.incarnation }
        guard let found = byName[declaration.identity.name], found.cache.identity == declaration.identity else {
            return nil
        }
        last = (declaration, found)
        return found
    }
}
