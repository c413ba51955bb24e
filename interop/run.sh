#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Taktwerk with other stacks: every pair of client and server with Taktwerk on at least one side, compared with known/,
# which lists what the *peer* does not support. Any difference is a failure.
#
#   run.sh [PAIR…]      all pairs, or those named, such as o6-client--taktwerk-server
#   JOBS=n run.sh       parallel jobs while building, default 2
#   PROGRAMS=DIR run.sh use taktwerk and examples/interop_smoke in this directory instead of building them
#   OUT=DIR run.sh      keep results and logs there; without it they are kept only after a failure
#
# Builds missing programs: the peers into target/peers, ours in release mode. As root it installs missing Debian
# packages; otherwise it lists them and exits with 6. The last line is `count: N passed, M failed`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peers=$root/target/peers
o6=$peers/open62541-tests/bin
py=$peers/asyncua/bin/python
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}

say() { echo "run.sh: $*" >&2; }
die() { say "$*"; exit 6; }

# --- what is needed --------------------------------------------------------------------------------------------------

packages() { # Debian packages to be installed
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing: $*"
        apt-get install -y --no-install-recommends "$@" >&2 ||
            { apt-get update >&2 && apt-get install -y --no-install-recommends "$@" >&2; } ||
            die "cannot install: $*"
    else
        die "missing: $* (Debian package names); install them and run this again"
    fi
}

command -v cargo >/dev/null || die "cargo is missing: install Rust 1.90 or newer"
python3 -c 'import ensurepip, venv' 2>/dev/null || packages python3 python3-venv
OPTIMIZED=0 "$here/open62541/build.sh" "$peers/open62541-tests"
"$here/environment.sh" asyncua "$peers/asyncua" || die "asyncua cannot be installed; is the Python package index reachable?"
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk --example interop_smoke
fi

# --- running ---------------------------------------------------------------------------------------------------------

keep=${OUT:-}
work=${keep:-$(mktemp -d)}
mkdir -p "$work"
server=''
client=''
failed_pairs=''
passed=0
failed=0
ran=0

cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    for process in $client $server; do
        kill "$process" 2>/dev/null || true
    done
    for process in $client $server; do
        wait "$process" 2>/dev/null || true
    done
    if [ -z "$keep" ] && [ -z "$failed_pairs" ]; then
        rm -rf "$work"
    elif [ -n "$failed_pairs" ]; then
        say "results and logs of the failed pairs:$failed_pairs are in $work"
    fi
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

start() { # name, command of a server
    log=$work/$1.log
    shift
    : >"$work/ready"
    "$@" >"$work/ready" 2>"$log" &
    server=$!
    waited=0
    while :; do
        url=$(sed -n 's/^READY //p' "$work/ready")
        [ -z "$url" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        [ "$waited" -lt 200 ] || break
        waited=$((waited + 1))
        sleep 0.1
    done
    say "this server did not start: $*"
    cat "$log" >&2
    exit 1
}

stop() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=''
}

# Evaluates one run of a pair. Writes the names of unexpected outcomes to NAME.diff and prints "PASSED KNOWN".
judge() { # name
    "$py" - "$work/$1.json" "$here/known/$1.txt" >"$work/$1.diff" <<'END'
import json
import pathlib
import sys

result, known = map(pathlib.Path, sys.argv[1:])
known = set(known.read_text().split("\n")) - {""} if known.exists() else set()
try:
    checks = json.loads(result.read_text())["checks"]
except (ValueError, KeyError, OSError) as e:
    checks = []
    print(f"no result: {e}")
failed = {c["name"]: c["detail"] for c in checks if not c["ok"]}
for name, detail in failed.items():
    if name not in known:
        print(f"{name}: {detail}")
for name in sorted(known - set(failed)):
    print(f"{name}: passes, but known/ says that it cannot")
print(len(checks) - len(failed), len(known & set(failed)), file=sys.stderr)
END
}

selected=${*:-all}

pair() { # name, what starts the server, command of a client without the URL
    name=$1
    launch=$2
    shift 2
    case " $selected " in
    *" all "* | *" $name "*) ;;
    *) return 0 ;;
    esac
    ran=$((ran + 1))
    attempt=1
    while :; do
        began=$(date +%s)
        "$launch"
        timeout 100 "$@" "$url" >"$work/$name.json" 2>"$work/$name.client.log" &
        client=$!
        wait "$client" || true
        client=''
        stop
        judge "$name" 2>"$work/$name.counts"
        read -r good tolerated <"$work/$name.counts"
        bad=$(wc -l <"$work/$name.diff")
        [ "$bad" -gt 0 ] && [ "$attempt" = 1 ] || break
        # Many checks count notifications within a second, and this machine may be busy.
        echo "$name: once more, because of:"
        sed 's/^/  /' "$work/$name.diff"
        attempt=2
    done
    passed=$((passed + good))
    failed=$((failed + bad))
    verdict=ok
    if [ "$bad" -gt 0 ]; then
        verdict=FAILED
        failed_pairs="$failed_pairs $name"
    fi
    note=''
    [ "$tolerated" = 0 ] || note=", $tolerated unsupported by the peer"
    echo "$name: $verdict, $good checks hold$note, $bad unexpected, $(($(date +%s) - began)) s"
    if [ "$bad" -gt 0 ]; then
        sed 's/^/  /' "$work/$name.diff"
    fi
}

# A separate server for each pair, because leftovers of one client (for example unclosed sessions) must not affect the
# next one.
ours() { start taktwerk-server "$programs/taktwerk" serve --port 0 --interop --no-plant --signals 100; }
open62541() { start o6-server "$o6/o6-server" --port 0 --variables 100 --update 100; }
asyncua() { start asyncua-server "$py" "$here/asyncua/server.py" --port 0 --variables 100 --update 100; }

# Our smoke client has no certificate for encrypting a password, so this server must not require one.
plain() {
    start taktwerk-server "$programs/taktwerk" serve --port 0 --interop --no-plant --signals 100 --policy None --node-management
}
pair o6-client--taktwerk-server ours "$o6/o6-client" smoke
pair asyncua-client--taktwerk-server ours "$py" "$here/asyncua/client.py" smoke
pair asyncua-alarms--taktwerk-server ours "$py" "$here/asyncua/client.py" alarms
pair taktwerk-client--taktwerk-server plain "$programs/examples/interop_smoke"
pair taktwerk-client--o6-server open62541 "$programs/examples/interop_smoke"
pair taktwerk-client--asyncua-server asyncua "$programs/examples/interop_smoke"
if [ "$ran" = 0 ]; then
    say "there is no such pair: $selected"
    exit 2
fi
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
