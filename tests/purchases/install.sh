#!/bin/sh
# Installs what package-lock.json names into node_modules. Does nothing when that is there already.
# Exit 69: node or npm is missing.
set -eu
cd "$(dirname "$0")"

# An installation that takes longer is stuck.
limit_seconds=600
stamp=node_modules/.clresolve-lock

for tool in node npm; do
    command -v "$tool" >/dev/null || { echo "tests/purchases needs $tool 20 or newer on the PATH" >&2; exit 69; }
done
cmp -s package-lock.json "$stamp" && exit 0
timeout "$limit_seconds" npm ci --ignore-scripts >&2
cp package-lock.json "$stamp"
