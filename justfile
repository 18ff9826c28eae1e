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

# audits of the published registry, in every form; needs CLRESOLVE_CORPUS
audit-registry folder="audits":
    CLRESOLVE_AUDIT_OUT="{{ absolute_path(folder) }}" cargo test --test e2e -- an_audit_of --nocapture

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# compile the sandbox's contracts again
contracts:
    cd src/sandbox/contracts && npm ci --ignore-scripts && node compile.mjs

# good, bad and hostile HTTP against a daemon, every answer checked
load rate="10000" seconds="60":
    cargo build --release --bin clresolve --example load
    target/release/examples/load {{rate}} {{seconds}}
