@main
struct LarderCommand {
    static func main() {}
}
