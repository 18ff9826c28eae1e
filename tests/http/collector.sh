#!/usr/bin/env bash
# Installs the collector of tests/daemon/http/traces.rs: Rotel from PyPI into FOLDER, pinned by hash. Prints the
# folder of its program.
set -euo pipefail
folder="$(realpath -m "${1:?expected: collector.sh FOLDER}")"
cd "$(dirname "$0")/../.."

if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  { apt-get update -q && apt-get install -qy --no-install-recommends python3-venv; } >&2
fi
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r .ci/rotel.txt >&2
dirname "$folder"/lib/python3*/site-packages/rotel/rotel-agent
