#!/bin/sh
# Installs what the clients' tests need, as the lock files name it: Node packages into typescript/node_modules, Python
# packages into python/.venv. Does nothing where that is there already. `install.sh typescript` or `install.sh python`
# installs for that one alone. Go and Rust need nothing here.
# Exit 69: node, npm or python3 is missing.
set -eu
cd "$(dirname "$0")"

# An installation that takes longer is stuck.
limit_seconds=600

need() {
    command -v "$1" >/dev/null || { echo "clients/ needs $1 on the PATH" >&2; exit 69; }
}

typescript() {
    need node
    need npm
    cmp -s typescript/package-lock.json typescript/node_modules/.clresolve-lock && return
    (cd typescript && timeout "$limit_seconds" npm ci --ignore-scripts >&2)
    cp typescript/package-lock.json typescript/node_modules/.clresolve-lock
}

python() {
    need python3
    cmp -s python/requirements.txt python/.venv/.clresolve-lock && return
    python3 -m venv --clear python/.venv
    timeout "$limit_seconds" python/.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes \
        -r python/requirements.txt >&2
    cp python/requirements.txt python/.venv/.clresolve-lock
}

case "${1:-all}" in
    all) typescript; python ;;
    typescript | python) "$1" ;;
    *) echo "usage: install.sh [typescript|python]" >&2; exit 64 ;;
esac
