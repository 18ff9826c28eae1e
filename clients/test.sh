#!/usr/bin/env bash
# Runs the tests of all guards, or of those that are named: test.sh [--all-run] [typescript] [python] [go] [rust].
# Installs what they need (install.sh). Counts what passed, failed and was skipped: a language whose tools are missing is
# skipped, and says so. Ends with 1 where anything failed, with --all-run also where anything was skipped.
set -uo pipefail
cd "$(dirname "$0")"

# The Node that the lock file of tests/e2e names, where it is installed.
pinned="$PWD/../tests/e2e/node_modules/.bin"
[ ! -x "$pinned/node" ] || export PATH="$pinned:$PATH"

all_run=false
if [ "${1:-}" = --all-run ]; then
  all_run=true
  shift
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
passed=0
failed=0
skipped=0

# Longest time of one runner, in seconds; it may have to build its tests first.
LIMIT=1800

# run FILTER COMMAND…: its output into the log, and what the filter leaves of it to be read. Ends as the command does.
run() {
  timeout "$LIMIT" "${@:2}" 2>&1 | tee "$log" | "$1"
  return "${PIPESTATUS[0]}"
}

# check WHAT COMMAND…: one test that passes with the command.
check() {
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
  fi
}

# count STATUS PASSED FAILED SKIPPED: how a runner ended, and what it printed. One that counted nothing has failed, and so
# has one that ended with an error and names no test that did.
count() {
  [ "$2" -gt 0 ] || failed=$((failed + 1))
  [ "$1" -eq 0 ] || [ "$3" -gt 0 ] || { failed=$((failed + 1)); echo "FAILED: the runner ended with $1"; }
  passed=$((passed + $2))
  failed=$((failed + $3))
  skipped=$((skipped + $4))
}

# number PATTERN: the sum of the numbers behind a pattern in the log.
number() {
  sed -nE "s/.*$1([0-9]+).*/\1/p" "$log" | awk '{ sum += $1 } END { print sum + 0 }'
}

# have TOOL…: whether all programs are there (`go` is a function here too); says which is not.
have() {
  for tool in "$@"; do
    type -P "$tool" >/dev/null && continue
    echo "skipped: there is no $tool"
    skipped=$((skipped + 1))
    return 1
  done
}

of_tap() { grep -vE '^ |^# Subtest|^TAP|^1\.\.'; }
of_go() { grep -E '^(---|FAIL|ok|panic)'; }

typescript() {
  have node npm || return
  ./install.sh typescript || { failed=$((failed + 1)); return; }
  check types typescript/node_modules/.bin/tsc -p typescript
  run of_tap node --test --test-reporter=tap typescript/test/*.test.js
  # A test that never settles is cancelled, and not counted among those that failed.
  count $? "$(number '^# pass ')" "$(($(number '^# fail ') + $(number '^# cancelled ')))" "$(number '^# skipped ')"
}

python() {
  have node python3 || return
  ./install.sh python || { failed=$((failed + 1)); return; }
  (cd python && .venv/bin/mypy --strict clresolve_guard tests) || failed=$((failed + 1))
  run cat env -C python .venv/bin/python -W ignore::ResourceWarning -m unittest
  local status=$? all bad out
  all="$(number '^Ran ')"
  bad=$(($(number 'failures=') + $(number 'errors=')))
  out="$(number 'skipped=')"
  count "$status" "$((all - bad - out))" "$bad" "$out"
}

go() {
  have node go || return
  # The buyer of tests/purchases is compiled in this module, too.
  local buyers=../../tests/purchases/buyers
  (cd go && [ -z "$(gofmt -l . $buyers)" ] && command go vet ./... && command go vet $buyers/guard.go) ||
    { failed=$((failed + 1)); echo "FAILED: gofmt or vet"; }
  run of_go env -C go go test -count=1 -v ./...
  count $? "$(grep -cE '^ *--- PASS' "$log")" "$(grep -cE '^ *--- FAIL' "$log")" "$(grep -cE '^ *--- SKIP' "$log")"
}

rust() {
  have node cargo || return
  run cat cargo test --locked --manifest-path rust/Cargo.toml
  count $? "$(number '^test result: [a-zA-Z]+\. ')" "$(number 'passed; ')" "$(number 'failed; ')"
}

[ $# -gt 0 ] || set -- typescript python go rust
for client in "$@"; do
  case "$client" in
    typescript | python | go | rust) printf '\n-- %s\n' "$client"; "$client" ;;
    *) echo "usage: test.sh [--all-run] [typescript] [python] [go] [rust]" >&2; exit 64 ;;
  esac
done
printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ] && { [ "$skipped" -eq 0 ] || ! "$all_run"; }
