/// Which release of the library this is.
public enum LarderVersion {
    /// The release, as the change log names it.
    public static let current = "0.1.0-dev"
}
