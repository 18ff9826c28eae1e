# Sourced by the runs in a real browser, at the root of the repository: the tools, their packages and the program.
# CLRESOLVE_BIN names a program that is built already, CHROMIUM a browser that is not /usr/bin/chromium.
# Exit 69: node, npm or Chromium is missing.
here=tests/explorer
browser="${CHROMIUM:-/usr/bin/chromium}"
for tool in node npm "$browser"; do
  command -v "$tool" >/dev/null || { echo "$here needs $tool" >&2; exit 69; }
done
if ! cmp -s "$here/package-lock.json" "$here/node_modules/.clresolve-lock"; then
  (cd "$here" && npm ci --ignore-scripts --no-audit --no-fund >&2)
  cp "$here/package-lock.json" "$here/node_modules/.clresolve-lock"
fi
if [ -z "${CLRESOLVE_BIN:-}" ]; then
  cargo build --locked --bin clresolve
  CLRESOLVE_BIN="${CARGO_TARGET_DIR:-target}/debug/clresolve"
fi
# Some of the runs start it from another folder.
CLRESOLVE_BIN="$(realpath "$CLRESOLVE_BIN")"
