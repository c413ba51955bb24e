#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Events, alarms, history and nodes with node-opcua and open62541 in both directions: their clients use our server, and
# `taktwerk events`, `alarms` and `history` use their servers.
#
#   PROGRAMS=DIR events.sh      use the taktwerk in this directory instead of building it
#   NODE_OPCUA=DIR events.sh    use the node-opcua in this directory instead of target/peers
#   OPEN62541=DIR events.sh     use the open62541 in this directory instead of target/peers/open62541-tests
#   ALARMS_TOO=1 events.sh      also alarms of open62541, which need another build of it
#
# The last line is `count: N passed, M failed`. Without node and npm, it skips node-opcua and says so.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
# Not the directory of the laboratory's peer, which peers.sh may be installing at the same time.
peer=${NODE_OPCUA:-$root/target/peers/node-opcua-client}
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}
open62541=${OPEN62541:-$root/target/peers/open62541-tests}
missing=''
for tool in node npm; do
    command -v "$tool" >/dev/null || missing=$tool
done
# Earlier versions cannot load its modules with require.
[ -n "$missing" ] || node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)' ||
    missing="node 20.19 or 22.12"
[ -n "$missing" ] || "$here/node.sh" node-opcua "$peer" || exit 6
OPTIMIZED=0 ALARMS_TOO=${ALARMS_TOO:-0} "$here/open62541/build.sh" "$open62541" || exit
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli || exit
fi
taktwerk=$programs/taktwerk
export NODE_PATH="$peer/node_modules"

work=$(mktemp -d)
server=''
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cp "$here/writable-history.toml" "$work/writable.toml"

passed=0
failed=0
check() { # name, whether it holds, detail
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    [ "$2" = 0 ] && echo "ok     $1" || echo "FAILED $1 ${3:-}"
}
start() { # program, its arguments
    : >"$work/ready"
    "$@" >"$work/ready" 2>"$work/log" &
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
}
stop() { # signal
    kill -s "$1" "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
}
client() { # arguments of client.js
    # The library logs to standard output too.
    timeout 100 node "$here/node-opcua/client.js" "$@" >"$work/out" 2>"$work/error"
    code=$?
    grep -E '^(ok|FAILED|    at) ' "$work/out"
    count=$(sed -n 's/^count: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/out")
    [ -n "$count" ] || { echo "FAILED client.js $1 ended with $code"; tail -5 "$work/error"; }
    # It may have ended before its last line.
    set -- ${count:-0 1}
    passed=$((passed + $1))
    failed=$((failed + $2))
}
ours() { # arguments of taktwerk; its output is in the files out and error
    timeout 20 "$taktwerk" "$@" >"$work/out" 2>"$work/error"
}
# Prints the checks in the JSON of o6-client and counts them.
open62541_client() { # arguments of o6-client
    timeout 100 "$open62541/bin/o6-client" "$@" >"$work/out" 2>"$work/error"
    code=$?
    sed -n 's/^ *{"name":"\([^"]*\)","ok":true.*/ok     \1/p
        s/^ *{"name":"\([^"]*\)","ok":false,"detail":"\(.*\)"},*$/FAILED \1 \2/p' "$work/out"
    count=$(sed -n 's/.*"passed":\([0-9]*\),"failed":\([0-9]*\),.*/\1 \2/p' "$work/out")
    [ -n "$count" ] || { echo "FAILED o6-client $1 ended with $code"; tail -5 "$work/error"; }
    set -- ${count:-0 1}
    passed=$((passed + $1))
    failed=$((failed + $2))
}
says() { # name, text that the output must contain
    grep -q -- "$2" "$work/out"
    check "$1" $? "$(head -c 600 "$work/out") $(head -3 "$work/error")"
}
# Reads the variable Ramp of a server: 0, 1 … 199.
read_ramp() {
    ours history "$url" 'ns=1;s=Ramp' --from -1h --csv
    [ "$(grep -c ',Good$' "$work/out")" = 200 ]
    check "200 values are read" $? "$(tail -3 "$work/out") $(cat "$work/error")"
    says "the last value is 199" ',199,Good$'
    ours history "$url" 'ns=1;s=Ramp' --from -1h -n 10 --csv
    [ "$(grep -c ',Good$' "$work/out")" = 10 ]
    check "ten of them" $? "$(cat "$work/out" "$work/error")"
    ours history "$url" 'ns=1;s=Ramp' --from now --to -1h -n 1 --csv
    says "the newest one" ',199,Good$'
}
says_error() { # name, text that the error must contain
    grep -q -- "$2" "$work/error"
    check "$1" $? "$(head -c 600 "$work/out") $(head -3 "$work/error")"
}

# Clients of both stacks and our server.
start "$taktwerk" serve --port 0 --policy None --pki "$work/pki" --interop --node-management
echo "== open62541 > taktwerk"
open62541_client operate "$url"
if [ -z "$missing" ]; then
    echo "== node-opcua > taktwerk"
    client operate "$url"
fi
stop TERM
start "$taktwerk" serve --config "$work/writable.toml"
open62541_client change "$url"
[ -n "$missing" ] || client change "$url"
stop TERM

# Our client and open62541's server, which has events of the Server Object and a history.
echo "== taktwerk > open62541"
start "$open62541/bin/o6-server" --port 0 --events 20 --history 200
ours events "$url" -n 4 --json
[ "$(grep -c '"SourceNode":"i=2253"' "$work/out")" = 4 ]
check "events are received" $? "$(cat "$work/out" "$work/error")"
ours events "$url" -n 3 --json --filter 'Severity >= 500'
[ "$(grep -c '"Severity":700' "$work/out")" = 3 ] && ! grep -q '"Severity":300' "$work/out"
check "a where clause holds others back" $? "$(cat "$work/out" "$work/error")"
ours events "$url" -n 1 --json --filter 'Severity > 700' -d 1s &&
    [ ! -s "$work/out" ]
check "even all" $? "$(cat "$work/out")"
ours alarms "$url" --list
says_error "a server without alarms gives an error that says so" 'Servers without alarms'
read_ramp
stop TERM

if [ "${ALARMS_TOO:-0}" = 1 ]; then
    echo "== taktwerk > open62541, alarms"
    start "$open62541/bin/o6-alarms" --port 0
    ours alarms "$url" --list
    says "no alarm is listed before it is active" 'no alarms'
    ours write "$url" 'ns=1;s=Level' 85
    ours alarms "$url" --list
    says "an active alarm is listed" '\(^\|[^n]\)active.*TankAlarm'
    ours alarms "$url" --list --json
    says "with its source" '"SourceNode": "ns=1;s=Tank"'
    says "and its severity" '"Severity": 700'
    ours alarms "$url" --acknowledge TankAlarm --comment 'on my way'
    says "it is acknowledged" 'TankAlarm: done'
    ours alarms "$url" --acknowledge TankAlarm
    says_error "a second time is an error" 'AlreadyAcked'
    ours alarms "$url" --list --json
    # It keeps only comments with a locale, and ours have none.
    says "its state is listed" '"Acknowledged": true'
    ours write "$url" 'ns=1;s=Level' 50
    ours alarms "$url" --list --json
    says "it is inactive, and still listed" '"Active": false'
    ours alarms "$url" --confirm TankAlarm
    says "it is confirmed" 'TankAlarm: done'
    ours alarms "$url" --list
    says "it is no longer listed" 'no alarms'
    stop TERM
fi

if [ -n "$missing" ]; then
    echo "node-opcua: skipped, $missing is missing (Debian: nodejs, npm)"
    echo "count: $passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
fi
# A durable subscription of node-opcua's client.
echo "== node-opcua > taktwerk, durable subscriptions"
set -- serve --port 0 --policy None --pki "$work/pki" --interop --no-plant --durable "$work/subscriptions.db"
start "$taktwerk" "$@"
client leave "$url" "$work/subscription"
stop KILL
start "$taktwerk" "$@"
client return "$url" "$work/subscription"
stop TERM

# Our client and node-opcua's server.
echo "== taktwerk > node-opcua"
start node "$here/node-opcua/plant.js"
ours events "$url" -n 4 --json
[ "$(grep -c '"SourceName":"Plant"' "$work/out")" = 4 ]
check "events are received" $? "$(cat "$work/out" "$work/error")"
ours events "$url" 'ns=1;s=Plant' -n 3 --json --filter "Severity >= 500 and SourceName = 'Plant'"
[ "$(grep -c '"Severity":700' "$work/out")" = 3 ] && ! grep -q '"Severity":300' "$work/out"
check "a where clause holds others back" $? "$(cat "$work/out" "$work/error")"
ours events "$url" -n 1 --json --filter 'oftype AlarmConditionType' -d 1s &&
    [ ! -s "$work/out" ]
check "even all" $? "$(cat "$work/out")"
ours write "$url" 'ns=1;s=Level' 85
ours write "$url" 'ns=1;s=Pressure' 97
ours alarms "$url" --list
says "an exclusive limit alarm is listed" 'active High.*LevelAlarm'
says "a non-exclusive one too" 'PressureAlarm'
ours alarms "$url" --list --json
says "both with their source" '"SourceNode": "ns=1;s=Pressure"'
ours alarms "$url" --acknowledge LevelAlarm --comment 'on my way'
says "an alarm is acknowledged" 'LevelAlarm: done'
ours alarms "$url" --list --json
says "and has the comment" '"Comment": "on my way"'
says "and its state" '"Acknowledged": true'
ours alarms "$url" --on PressureAlarm --comment 'too high'
says "a comment is added to an alarm" 'PressureAlarm: done'
ours alarms "$url" --shelve PressureAlarm --for 60s
says "an alarm is shelved for a time" 'PressureAlarm: done'
ours alarms "$url" --list --json
says "and says so" '"Shelving": "Timed'
ours alarms "$url" --unshelve PressureAlarm
says "it is unshelved" 'PressureAlarm: done'
ours write "$url" 'ns=1;s=Level' 50
ours alarms "$url" --confirm LevelAlarm
says "an alarm is confirmed" 'LevelAlarm: done'
read_ramp
stop TERM

echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
