#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# NodeManagement, aliases and files with asyncua: it adds nodes to a server, deletes them, finds aliases, and reads and writes
# the files of a shared folder.
#
#   PROGRAMS=DIR nodes.sh       takes taktwerk from there instead of building it
#   PEER=DIR nodes.sh           takes asyncua from there instead of target/peers
#
# The last line is `count: N passed, M failed`.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peer=${PEER:-$root/target/peers/asyncua}
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}
"$here/environment.sh" asyncua "$peer" || exit 6
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli || exit
fi

work=$(mktemp -d)
server=''
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

mkdir "$work/recipes"
printf flour >"$work/recipes/bread.txt"
cat >"$work/server.toml" <<END
[server]
bind = ["127.0.0.1:0"]
[security]
policies = []
none = true
[identities]
anonymous = true
[permissions]
unspecified = "open"
[node_management]
enabled = true
[[files]]
name = "Recipes"
folder = "recipes"
write = ["Anonymous"]
END
"$programs/taktwerk" serve --config "$work/server.toml" >"$work/ready" 2>"$work/log" &
server=$!
waited=0
url=''
while [ "$waited" -lt 300 ] && [ -z "$url" ]; do
    url=$(sed -n 's/^READY //p' "$work/ready")
    kill -0 "$server" 2>/dev/null || break
    waited=$((waited + 1))
    sleep 0.1
done
[ -n "$url" ] || { echo "the server did not start:"; cat "$work/log"; exit 1; }
timeout 100 "$peer/bin/python" "$here/asyncua/nodes.py" "$url" >"$work/out" 2>"$work/error"
code=$?
cat "$work/out"
[ "$code" = 0 ] || grep -A1 "nodes.py" "$work/error" | tail -4; tail -1 "$work/error"
# It may have ended before its last line.
grep -q '^count: ' "$work/out" || echo "count: 0 passed, 1 failed"
exit "$code"
