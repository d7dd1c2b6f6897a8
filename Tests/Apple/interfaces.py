"""Writes the text interfaces of Apple's modules, from those that the toolchain has for Linux.

Usage: interfaces.py TOOLCHAIN PRINTED STUBS HEADERS TARGET OUT

The compiler reads a module as text and compiles it for any target. PRINTED has what it prints of FoundationEssentials and
Dispatch, STUBS what Apple's modules have beyond that. Each edit is looked for and has to be found: another release of the toolchain
ends this script, and does not pass by chance.
"""
import os
import re
import sys

TOOLCHAIN, PRINTED, STUBS, HEADERS, TARGET, OUT = sys.argv[1:]
INTERFACES = TOOLCHAIN + "/lib/swift/linux/"
LINUX = "x86_64-unknown-linux-gnu"


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(module, text):
    with open(f"{OUT}/{module}.swiftinterface", "w", encoding="utf-8") as file:
        file.write(text)


def changed(text, old, new):
    if old not in text:
        sys.exit(f"interfaces.py: this toolchain has no {old[:70]!r}. Look at its interfaces again.")
    return text.replace(old, new)


def toolchain_interface(module):
    """The interface that the toolchain has of a module, for Linux."""
    return text_of(f"{INTERFACES}{module}.swiftmodule/{LINUX}.swiftinterface")


def retargeted(module):
    """The same for the target. What a declaration says of its availability is checked against that."""
    text = changed(toolchain_interface(module), f"-target {LINUX}", f"-target {TARGET}")
    text = text.replace("-target-min-inlining-version min", "")
    text = text.replace("-library-level api", "-library-level api -target-min-inlining-version target")
    # Bodies for older systems are not in the text.
    text = re.sub(r"@backDeployed\(before:[^)]*\)\s*", "", text)
    return re.sub(r"^import Glibc$", "import Darwin", text, flags=re.M)


def header(module, features=()):
    flags = " ".join(f"-enable-experimental-feature {feature}" for feature in features)
    version = re.search(r"// swift-compiler-version:.*\n", toolchain_interface("Swift")).group(0)
    return (
        f"// swift-interface-format-version: 1.0\n{version}"
        f"// swift-module-flags: -target {TARGET} -disable-objc-interop -enable-library-evolution -swift-version 5"
        f" -module-name {module} -target-min-inlining-version target {flags}\n"
        "import Swift\nimport _Concurrency\nimport _StringProcessing\n")


def declarations(text):
    """The declarations at the top level of a printed module, each with its attributes and members."""
    found, lines, depth = [], [], 0
    for line in text.splitlines():
        if re.match(r"\s*//|import ", line):
            continue
        if not line.strip() and depth == 0:
            found.append("\n".join(lines))
            lines = []
            continue
        code = re.sub(r'"(\\.|[^"\\])*"', "", line)
        depth += code.count("{") - code.count("}")
        lines.append(line)
    return [declaration for declaration in found + ["\n".join(lines)] if declaration]


KINDS = "struct|class|enum|protocol|extension|typealias|actor|func|var|let|operator|macro"


def subject(declaration):
    """The name of what is declared or extended."""
    match = re.search(
        r"^(?:@\S+(?:\([^\n]*\))? )*(?:(?:public|open|final|indirect|nonisolated|prefix|infix|postfix) )*"
        rf"(?:{KINDS}) ([\w.]+)", declaration, re.M)
    return match.group(1) if match else ""


def standard_library():
    text = retargeted("Swift")
    # Two functions of a type that arm64 does not have: Linux has no bodies of them.
    for body in ["self = _stdlib_remainderl(self, other)", "self = _stdlib_squareRootl(self)"]:
        text = changed(text, body, "fatalError()")
    write("Swift", text)
    for module in "SwiftOnoneSupport", "_Builtin_float", "_Concurrency", "_RegexParser", "_StringProcessing", "Observation":
        write(module, retargeted(module))
    testing = changed(toolchain_interface("Testing"), f"-target {LINUX}", f"-target {TARGET}")
    write("Testing", re.sub(r"^((?:\w+ )?import) Glibc$", r"\1 Darwin", testing, flags=re.M))


def synchronization():
    """A mutex waits by a futex on Linux, and by an unfair lock on Apple's systems."""
    text = retargeted("Synchronization")
    available = "@available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)\n"
    begin = text.index(available + "@frozen @_staticExclusiveOnly public struct _MutexHandle")
    end = text.index(available + "@frozen @_staticExclusiveOnly public struct Mutex<Value>")
    calls = [("_lock", "", "os_unfair_lock_lock"), ("_tryLock", " -> Swift.Bool", "os_unfair_lock_trylock"),
             ("_unlock", "", "os_unfair_lock_unlock")]
    handle = available + (
        "@frozen @_staticExclusiveOnly public struct _MutexHandle : ~Swift.Copyable {\n"
        "  @usableFromInline internal let value: Synchronization._Cell<Darwin.os_unfair_lock>\n"
        "  @_alwaysEmitIntoClient @_transparent public init() { value = _Cell(os_unfair_lock()) }\n")
    for name, result, call in calls:
        handle += f"  @_alwaysEmitIntoClient @_transparent internal borrowing func {name}(){result} {{ {call}(value._address) }}\n"
    text = text[:begin] + handle + "}\n" + text[end:]
    conformance = "extension Synchronization._MutexHandle : {}Swift.Sendable {{}}"
    write("Synchronization", changed(text, conformance.format(""), conformance.format("@unchecked ")))


def darwin():
    """The Swift half of the C library: that of Linux, and the error codes of the headers."""
    text = toolchain_interface("Glibc")
    for module in "SwiftGlibc", "SwiftOverlayShims", "Glibc":
        text = text.replace(module + ".", "Darwin.")

    def part(begin, end=None):
        first = text.index(begin)
        return text[first:text.index(end, first) if end else len(text)]

    functions = part("public var errno", "public typealias sighandler_t")
    durations = part("@available(macOS 13.0, iOS 16.0, watchOS 9.0, tvOS 16.0, *)\nextension Darwin.timespec", "public var environ")
    mathematics = re.sub(
        r"^@_transparent public func [^\n]*Float80[^\n]*\{\n.*?^\}\n", "",
        part('@available(swift, deprecated: 4.2, renamed: "abs")'), flags=re.M | re.S)
    mathematics = "".join(line + "\n" for line in mathematics.splitlines() if "Float80" not in line)
    codes = {}
    for name, number in re.findall(r"^#define\s+(E[A-Z0-9]+)\s+(\d+)\s", text_of(HEADERS + "/sys/errno.h"), re.M):
        # Names of a number that has another one, and the end of the list.
        if name not in ("ELAST", "EWOULDBLOCK") and (name, number) != ("EOPNOTSUPP", "45"):
            codes.setdefault(int(number), name)
    cases = "".join(f"  case {name}\n" for _, name in sorted(codes.items()))
    enumeration = (
        f"public enum POSIXErrorCode : Swift.Int32, @unchecked Swift.Sendable {{\n{cases}  public init?(rawValue: Swift.Int32)\n"
        "  public typealias RawValue = Swift.Int32\n  public var rawValue: Swift.Int32 { get }\n}\n")
    write("Darwin", header("Darwin") + "@_exported import Darwin\n" + functions + durations + enumeration + mathematics
          + text_of(STUBS + "/Darwin.swiftinterface"))


def dispatch():
    kept = [declaration for declaration in declarations(text_of(PRINTED + "/Dispatch.txt"))
            if not subject(declaration).startswith(("DispatchIO", "DispatchData"))]
    text = "\n".join(kept).replace("override public init()", "public init()")
    write("Dispatch", header("Dispatch") + "import Darwin\n" + text + "\n" + text_of(STUBS + "/Dispatch.swiftinterface"))


# Parts of FoundationEssentials that the project does not use, and whose printed form is incomplete.
LEFT_OUT = re.compile(
    r"NotificationCenter|Discontiguous|Predicate|StandardPredicateExpression|Expression$|ExpressionEvaluate|Attribut|URL\.Template|"
    r"_\w*Predicate|KeyPathComparator|SortDescriptor|ScopedAttributeContainer|ObjectiveC|NSKeyValue|"
    r"(?:De|En)?[Cc]odableAttributedStringKey|DecodableAttributed|EncodableAttributed|Markdown|DiscreteFormatStyle\.Attrib|Swift\.KeyPath")
NAMES_LEFT_OUT = re.compile(r"Attribute(?:d|Scope|Container|Dynamic)|Predicate|URL\.Template|ObservationRegistrar")
# An overload whose rank is not printed, and one that Apple does not have.
LINUX_ALONE = re.compile(r"init<T, Value>\(_ value: Value, strategy: T\)|isDirectory: inout Bool")


def completed(declaration):
    """A declaration without members that name what is left out, and with the accessors that are not printed."""
    is_extension = re.search(r"^(?:@.*\n)*(?:public )?extension ", declaration)
    lines = []
    for line in declaration.splitlines():
        if (NAMES_LEFT_OUT.search(line) or LINUX_ALONE.search(line)) and not line.endswith("{"):
            while lines and re.match(r"\s*@\S+(?:\([^\n]*\))?$", lines[-1]):
                lines.pop()
            continue
        line = re.sub(r" (?:private|internal)\(set\) ", " ", line)
        is_variable = re.match(r"\s*(?:@\w+ )*(?:public |open )?(?:static |class )?(?:subscript|var)\b", line)
        if is_variable and "{" not in line and ("subscript" in line or is_extension or "@inlinable" in line):
            line += " { get set }"
        lines.append(line)
    return "\n".join(lines)


def foundation():
    text = ""
    for declaration in declarations(text_of(PRINTED + "/FoundationEssentials.txt")):
        first_line = next((line for line in declaration.splitlines() if line.endswith("{")), "")
        if not LEFT_OUT.match(subject(declaration)) and not NAMES_LEFT_OUT.search(first_line):
            text += completed(declaration) + "\n"
    write("Foundation", header("Foundation", ["LifetimeDependence", "NonescapableTypes"])
          + "@_exported import Darwin\n@_exported import Dispatch\n" + text + text_of(STUBS + "/Foundation.swiftinterface"))


standard_library()
synchronization()
darwin()
dispatch()
foundation()
write("os", header("os") + "import Darwin\n" + text_of(STUBS + "/os.swiftinterface"))
# Frameworks that the examples use. The first line of each names what it exports.
for name in sorted(os.listdir(STUBS + "/Examples")):
    exported, text = text_of(f"{STUBS}/Examples/{name}").split("\n", 1)
    imports = "".join(f"@_exported import {module}\n" for module in exported.removeprefix("// Exports: ").split())
    module = name.removesuffix(".swiftinterface")
    write(module, header(module) + imports + text)
