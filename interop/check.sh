#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the peers against each other. Failures between two peers are their own limitations and are listed in known/. Any
# difference from that list fails.
#
#   check.sh            all pairs
#   UPDATE=1 check.sh   rewrite the lists
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
peers=$here/../target/peers
o6=$peers/open62541/bin
py=$peers/asyncua/bin/python
work=$(mktemp -d)
server=''
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
status=0

start() { # command of a server
    "$@" >"$work/ready" 2>"$work/server.log" &
    server=$!
    for _ in $(seq 100); do
        url=$(sed -n 's/^READY //p' "$work/ready")
        test -z "$url" || return 0
        sleep 0.1
    done
    echo "server did not start: $*" >&2
    cat "$work/server.log" >&2
    exit 1
}

stop() {
    kill "$server"
    wait "$server" || true
    server=''
}

pair() { # name, command of a client
    name=$1
    shift
    "$@" >"$work/$name.json" 2>/dev/null || true
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(sys.argv[2] + ":", d["passed"], "passed,", d["failed"], "failed", file=sys.stderr)
for c in d["checks"]:
    if not c["ok"]:
        print(c["name"])' "$work/$name.json" "$name" | sort >"$work/$name.failed"
    if [ "${UPDATE:-0}" = 1 ]; then
        cp "$work/$name.failed" "$here/known/$name.txt"
    elif ! diff -u "$here/known/$name.txt" "$work/$name.failed"; then
        status=1
    fi
}

start "$o6/o6-server" --port 0 --variables 1000 --update 100
pair o6-client--o6-server "$o6/o6-client" smoke "$url"
pair asyncua-client--o6-server "$py" "$here/asyncua/client.py" smoke "$url"
stop
start "$o6/o6-server" --port 0 --variables 100 --update 100 --policies all --trust-all
pair o6-client--o6-server-encrypted "$o6/o6-client" smoke "$url" --mode encrypt
stop
start "$py" "$here/asyncua/server.py" --port 0 --variables 100 --update 100
pair o6-client--asyncua-server "$o6/o6-client" smoke "$url"
pair asyncua-client--asyncua-server "$py" "$here/asyncua/client.py" smoke "$url"
stop
exit $status
