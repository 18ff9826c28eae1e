# The everyday commands.

# the main job on the embedded default
demo:
    cargo run --release -- --sandbox summarizeagent.eth

# all tests
test:
    cargo test

# everything that CI checks, or some of its lanes: static, test, live
ci *LANES:
    .ci/run {{LANES}}

# what to run before each commit: format, lints, unit tests, scenarios
check: lint
    cargo test --workspace --lib
    cargo test --test scenarios verdicts::

# audits of the published registry, in every form; needs CLRESOLVE_CORPUS
audit-registry folder="audits":
    CLRESOLVE_AUDIT_OUT="{{ absolute_path(folder) }}" cargo test --test e2e -- an_audit_of --nocapture

# the published x402 clients buy, plain and guarded, in each attack: all, or those named
purchases *CLIENTS:
    tests/purchases/run {{CLIENTS}}

# the published MCP clients list and call every tool, over standard input and output and over HTTP
mcp:
    tests/mcp/run

# what published verifiers say of the sandbox's receipts: compares with answers.txt, or `--write`
verifiers *OPTIONS:
    tests/receipts/verifiers/run {{OPTIONS}}

lint:
    .ci/format --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p clresolve-resolver -- -D warnings

# fuzz one target (fuzz/run lists them) for SECONDS
fuzz TARGET SECONDS="60":
    fuzz/run {{TARGET}} {{SECONDS}}

# a few thousand runs of every target, as each night
fuzz-smoke:
    fuzz/run smoke

# take the defences of the threat model out one by one (all, `crates`, or the names of switches)
mutants *NAMES:
    tests/mutants/run {{NAMES}}

# change each operator and result in the code that counts, walks, guards and decides; needs cargo-mutants
mutate *FILES="crates/chain/src/quorum.rs crates/state/src/trie.rs crates/egress/src/guard.rs crates/verdict/src/gate.rs":
    tests/mutants/sources {{FILES}}

# write the seeds of the fuzz targets again, after tests/scenarios/fuzz/seeds.rs has changed
fuzz-seeds:
    SEEDS=write cargo test --test scenarios fuzz::

# give the fuzz targets the versions of Cargo.lock, after it has changed
fuzz-lock:
    cp Cargo.lock fuzz/Cargo.lock
    cp Cargo.lock examples/embedding/Cargo.lock
    cp Cargo.lock clients/rust/Cargo.lock
    cargo metadata --manifest-path examples/embedding/Cargo.toml --format-version 1 > /dev/null
    cargo metadata --manifest-path fuzz/Cargo.toml --format-version 1 > /dev/null
    cargo metadata --manifest-path clients/rust/Cargo.toml --format-version 1 > /dev/null

# write the list of public names again, after the library offers others
surface:
    SURFACE=write cargo test --test cli the_public_surface

# write docs/reference again, after commands, keys, routes, metrics or codes changed
reference:
    REFERENCE=write cargo test --test cli reference_pages

# the tests of the guards below payment clients (all, or: typescript python go rust)
guards *CLIENTS:
    clients/test.sh {{CLIENTS}}

# compile the sandbox's contracts again
contracts:
    cd crates/sandbox/contracts && npm ci --ignore-scripts && node compile.mjs

# search for the documents of 256 KiB that cost most to judge, and count the instructions of the finalists; needs valgrind.
# crates/cards/tests/worst/corpus.json keeps the first of each judge
worst seconds="600":
    cargo build --release -p clresolve -p clresolve-traffic
    target/release/worst search {{seconds}} | crates/cards/tests/worst/rank

# count the instructions of the known ones, as in CI; needs valgrind
worst-count:
    .ci/worst

# send good, bad and hostile HTTP to a daemon and check every answer
load rate="10000" seconds="60":
    cargo build --release -p clresolve -p clresolve-traffic
    crates/traffic/own-network target/release/load {{rate}} {{seconds}}

# honest, hostile and worst-case traffic against a daemon: was an answer of the gate wrong or late?
soak seconds="60":
    cargo build --release -p clresolve -p clresolve-traffic
    crates/traffic/own-network target/release/soak {{seconds}}

# a fleet of three under load while chain, hosts, Redis and daemons stall, die, lie and return: was an answer wrong?
chaos seconds="60":
    cargo build --release -p clresolve -p clresolve-traffic
    target/release/chaos {{seconds}}

# records change under load while slots are missed and endpoints lag and lie: does the gate close before the next block?
freshness changes="1000":
    cargo build --release -p clresolve -p clresolve-traffic
    target/release/freshness {{changes}}

# an audit of generated names, one in twenty with each of many defects: was one overlooked or invented, does memory grow?
registry names="300":
    cargo build --release -p clresolve -p clresolve-traffic
    target/release/registry {{names}}

# three daemons behind nginx are restarted one after the other under load: was a request lost?
rolling seconds="60":
    cargo build --release -p clresolve -p clresolve-traffic
    target/release/rolling {{seconds}}

# every state, disguise and failure before nginx, Caddy and Envoy: `all`, or `write` for tests/proxy/matrix.txt
proxies mode="all":
    PATH="$(tests/proxy/install.sh target/proxies):$PATH" PROXIES={{mode}} cargo test --test daemon proxy:: -- --nocapture

# send traces to a real collector, Rotel, and read them back
collector:
    PATH="$(tests/http/collector.sh target/collector):$PATH" cargo test --test daemon real_collector -- --nocapture

# the shipped dashboard drawn from a real run of soak and chaos, each of SECONDS; `--write` takes the document's pictures
dashboard SECONDS="60" *WRITE:
    cargo build --locked --release -p clresolve -p clresolve-traffic
    tests/explorer/dashboard {{SECONDS}} {{WRITE}}

# have promtool, kubernetes-validate and docker-compose check what is in deploy/
deploy-check:
    deploy/check

# every benchmark, as rows of a table
bench:
    @echo "| what | measured | beside it, in the same run | ratio | budget | command |"
    @echo "|---|---|---|--:|--:|---|"
    @cargo bench | grep '^|'

# a light-client update
bench-beacon:
    cargo bench --bench beacon

# the checks of one card
bench-card:
    cargo bench --bench card

# a warm verdict in the library
bench-warm:
    cargo bench --bench warm

# a warm verdict over HTTP
bench-http:
    cargo bench --bench http

# a cold verdict over long lines
bench-cold:
    cargo bench --bench cold

# a receipt verified warm
bench-receipt:
    cargo bench --bench receipt

# from the start of the process
bench-process:
    cargo bench --bench process

# the peak memory of an audit
bench-audit:
    cargo bench --bench audit

# every route of a daemon on the sandbox, held to its description with so many examples of each operation
openapi EXAMPLES="50":
    tests/openapi/run {{EXAMPLES}}

# the memory of the daemon over a million requests; it takes many minutes
bench-crowd:
    cargo bench --bench crowd

# a million cards of every system with some bytes changed, recognised and judged
mutate-cards count="1000000":
    MUTATED_CARDS={{count}} cargo test --release --test cli mutated_cards_do_no_harm -- --nocapture

# lint beside Ajv 8; needs Node
bench-lint:
    cargo bench --bench lint

# the number of crates behind a program that embeds the library
embedder:
    .ci/embedder

# what it costs to work here: the release build from nothing, one changed check to its scenarios, all tests warm
loop:
    .ci/loop

# the explorer in headless Chromium, under axe, without script, by keyboard; `--write` takes the pictures of the document
explorer *WRITE:
    tests/explorer/run {{WRITE}}

# the HTML report of audits in headless Chromium, under axe, printed; `--write` takes the pictures of the document
audit-page *WRITE:
    tests/explorer/audit-page {{WRITE}}
