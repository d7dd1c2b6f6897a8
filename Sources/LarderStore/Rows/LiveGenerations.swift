/// The live generations of a store.
struct LiveGenerations {
    private var byName: [ExactName: Generation] = [:]
    /// The declaration that was asked for last.
    private var last: (declaration: CacheDeclaration, generation: Generation)?

    var values: Dictionary<ExactName, Generation>.Values { byName.values }

    /// The generations by id, which damage can have given to two.
    var byID: [Int64: Generation] { [Int64: Generation](values.map { ($0.id, $0) }) { first, _ in first } }

    subscript(name: ExactName) -> Generation? {
        get { byName[name] }
        set { (byName[name], last) = (newValue, nil) }
    }

    /// Returns the generation of a declaration; nil if the handle is superseded.
    mutating func generation(of declaration: CacheDeclaration) -> Generation? {
        if let last, last.declaration === declaration { return last.generation }
        guard let found = byName[declaration.identity.name], found.cache.identity == declaration.identity else {
            return nil
        }
        last = (declaration, found)
        return found
    }
}
