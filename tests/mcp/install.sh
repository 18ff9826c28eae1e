#!/bin/sh
# Installs what package-lock.json and requirements.txt name into node_modules and .venv. Does nothing where that is there
# already. Node itself is that of tests/e2e.
# Exit 69: node, npm or python3 is missing.
set -eu
cd "$(dirname "$0")"

# An installation that takes longer is stuck.
limit_seconds=300

for tool in node npm python3; do
    command -v "$tool" >/dev/null || { echo "tests/mcp needs $tool on the PATH" >&2; exit 69; }
done
../e2e/install.sh
if ! cmp -s package-lock.json node_modules/.clresolve-lock; then
    timeout "$limit_seconds" npm ci --ignore-scripts >&2
    cp package-lock.json node_modules/.clresolve-lock
fi
if ! cmp -s requirements.txt .venv/.clresolve-lock; then
    python3 -m venv --clear .venv
    timeout "$limit_seconds" .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt >&2
    cp requirements.txt .venv/.clresolve-lock
fi
