#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Eclipse Milo as a client of our server: events, alarms, history and nodes.
#
#   PROGRAMS=DIR milo.sh        use the taktwerk in this directory instead of building it
#   MILO=DIR milo.sh            use the Milo in this directory instead of target/peers
#
# The last line is `count: N passed, M failed`. Without a JDK and Maven, nothing is tested, and the script says so.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peer=${MILO:-$root/target/peers/milo-client}
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}
for tool in java javac mvn; do
    command -v "$tool" >/dev/null || {
        echo "milo: skipped, $tool is missing (Debian: default-jdk-headless, maven)"
        exit 0
    }
done
mkdir -p "$peer"
now=$(cat "$here/milo-client/pom.xml" "$here/milo-client/src/MiloClient.java" | cksum)
if [ "$(cat "$peer/stamp" 2>/dev/null)" != "$now" ]; then
    rm -rf "$peer/lib" "$peer/classes"
    mvn -q -B -f "$here/milo-client/pom.xml" dependency:copy-dependencies -DoutputDirectory="$peer/lib" >&2 || exit 6
    javac -d "$peer/classes" -cp "$peer/lib/*" "$here/milo-client/src/MiloClient.java" || exit
    echo "$now" >"$peer/stamp"
fi
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
cp "$here/writable-history.toml" "$work/server.toml"
passed=0
failed=0
run() { # command of MiloClient, arguments of taktwerk serve
    command=$1
    shift
    : >"$work/ready"
    "$programs/taktwerk" serve "$@" >"$work/ready" 2>"$work/log" &
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
    timeout 100 java -cp "$peer/lib/*:$peer/classes" MiloClient "$command" "$url" >"$work/out" 2>"$work/error"
    code=$?
    grep -v '^count: ' "$work/out"
    kill "$server"
    wait "$server" 2>/dev/null
    server=''
    count=$(sed -n 's/^count: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/out")
    [ -n "$count" ] || { echo "FAILED MiloClient $command ended with $code"; tail -5 "$work/error"; }
    set -- ${count:-0 1}
    passed=$((passed + $1))
    failed=$((failed + $2))
}
run operate --port 0 --policy None --pki "$work/pki" --interop --node-management
run change --config "$work/server.toml"
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
