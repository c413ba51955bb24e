#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# PubSub with other stacks: UADP over UDP on the loopback, in both directions, in every layout and security mode that
# the peer supports. The subscriber prints received values; every line must match what the publisher sent.
#
#   pubsub.sh [PAIR…]    all pairs, or those whose name contains an argument: o6--taktwerk, fixed-encrypt, asyncua …
#   JOBS=n pubsub.sh     parallel jobs while building, default 2
#
# Builds missing programs like run.sh. The last line is `count: N passed, M failed`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peers=$root/target/peers
o6=$peers/open62541-tests/bin/o6-pubsub
py=$peers/asyncua/bin/python
ours=${CARGO_TARGET_DIR:-$root/target}/debug/examples/udp_peer
messages=50

say() { echo "pubsub.sh: $*" >&2; }
die() { say "$*"; exit 6; }

if [ ! -x "$o6" ]; then
    OPTIMIZED=0 PUBSUB_TOO=1 "$here/open62541/build.sh" "$peers/open62541-tests"
fi
"$here/environment.sh" asyncua "$peers/asyncua" || die "asyncua cannot be installed; is the Python package index reachable?"
cargo build --manifest-path "$root/Cargo.toml" --quiet -p taktwerk-pubsub --example udp_peer

work=$(mktemp -d)
subscriber=''
publisher=''
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    for process in $subscriber $publisher; do
        kill "$process" 2>/dev/null || true
    done
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# A port that is free now. It cannot be reserved.
free_port() {
    python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

peer() { # name, role, flags
    name=$1
    shift
    case $name in
    taktwerk) set -- "$ours" "$@" ;;
    o6) set -- "$o6" "$@" ;;
    asyncua) set -- "$py" "$here/asyncua/pubsub.py" "$@" ;;
    esac
    exec timeout 60 "$@"
}

ready() { # output, process
    waited=0
    until grep -q '^READY' "$1" || [ $waited -ge 300 ] || ! kill -0 "$2" 2>/dev/null; do
        waited=$((waited + 1))
        sleep 0.1
    done
}

selected=$*
passed=0
failed=0

pair() { # publisher, subscriber, layout, mode, policy
    name="$1--$2-$3-$4-$5"
    if [ -n "$selected" ]; then
        chosen=no
        for part in $selected; do
            case $name in *"$part"*) chosen=yes ;; esac
        done
        [ $chosen = yes ] || return 0
    fi
    url=opc.udp://127.0.0.1:$(free_port)
    flags="--url $url --layout $3 --mode $4"
    [ "$5" = - ] || flags="$flags --policy $5"
    rm -f "$work/go"
    : >"$work/sent"
    : >"$work/out"
    if [ "$1" = o6 ]; then
        # It tests whether it can listen at the address that the subscriber is going to use.
        # shellcheck disable=SC2086
        (peer o6 publish $flags --count $messages --interval 10 --after "$work/go") >"$work/sent" 2>"$work/log" &
        publisher=$!
        ready "$work/sent" $publisher
    fi
    patience=50
    least=$messages
    case $name in
    # It prints the values of its nodes, which two messages may have written before it reads them.
    *--o6-*) least=$((messages * 4 / 5)) ;;
    esac
    # shellcheck disable=SC2086
    (peer "$2" subscribe $flags --count $messages --seconds 30) >"$work/out" 2>>"$work/log" &
    subscriber=$!
    ready "$work/out" $subscriber
    # Announced sockets may take a moment until they are read.
    sleep 0.2
    if [ -n "$publisher" ]; then
        : >"$work/go"
        wait $publisher || true
        publisher=''
    else
        # shellcheck disable=SC2086
        (peer "$1" publish $flags --count $messages --interval 10) >"$work/sent" 2>>"$work/log" || true
    fi
    # On the loopback, everything sent has arrived. A waiting subscriber either processes it now or will not get it.
    waited=0
    while kill -0 $subscriber 2>/dev/null && [ $waited -lt "$patience" ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
    kill $subscriber 2>/dev/null || true
    wait $subscriber 2>/dev/null || true
    subscriber=''
    if outcome=$(python3 - "$work/out" "$messages" "$least" <<'END'
import sys

lines = [line.split() for line in open(sys.argv[1]) if not line.startswith("READY")]
wanted, least = int(sys.argv[2]), int(sys.argv[3])
wrong = [l for l in lines if len(l) != 4 or l[1] != f"{int(l[0]) + 0.5:.1f}" or l[2] != ("true" if int(l[0]) % 2 else "false")
         or l[3] != f"t{l[0]}"] if all(l[:1] and l[0].isdigit() for l in lines) else lines
counts = [int(l[0]) for l in lines] if not wrong else []
print(f"{len(counts)} of {wanted} messages", *("; first wrong line: " + " ".join(l) for l in wrong[:1]))
sys.exit(bool(wrong) or counts != sorted(set(counts)) or len(counts) < least or (least > 1 and counts[-1] != wanted))
END
    ); then
        passed=$((passed + 1))
        echo "$name: ok, $outcome"
    else
        failed=$((failed + 1))
        echo "$name: FAILED, $outcome"
        sed 's/^/  /' "$work/log" | tail -5
    fi
}

for layout in dynamic fixed full; do
    for security in none:- sign:aes128 sign:aes256 encrypt:aes128 encrypt:aes256; do
        pair o6 taktwerk $layout "${security%:*}" "${security#*:}"
        pair taktwerk o6 $layout "${security%:*}" "${security#*:}"
    done
done
for layout in dynamic full; do
    pair asyncua taktwerk $layout none -
    pair taktwerk asyncua $layout none -
done
pair taktwerk taktwerk dynamic encrypt aes256
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
