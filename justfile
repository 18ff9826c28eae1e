# The everyday commands.

# the main job on the embedded default
demo:
    cargo run --release -- --sandbox summarizeagent.eth

# all tests
test:
    cargo test

# everything that CI checks
ci:
    bash .ci/run

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# compile the sandbox's contracts again
contracts:
    cd src/sandbox/contracts && npm ci --ignore-scripts && node compile.mjs

# every row of the README's performance table
bench:
    @echo "| what | measured | beside it, in the same run | ratio | budget | command |"
    @echo "|---|---|---|--:|--:|---|"
    @cargo bench | grep '^|'

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

# from the start of the process
bench-process:
    cargo bench --bench process

# memory of an audit
bench-audit:
    cargo bench --bench audit
