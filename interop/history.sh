#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# History with asyncua in both directions: asyncua reads the history of values and events of our demo plant, and
# `taktwerk history` reads a variable that an asyncua server historizes. `taktwerk events` receives that server's events;
# nodes.sh has events in the other direction.
#
#   PROGRAMS=DIR history.sh     use the taktwerk in this directory instead of building it
#   PEER=DIR history.sh         use the asyncua in this directory instead of target/peers
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
passed=0
failed=0
check() { # name, whether it holds, detail
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    [ "$2" = 0 ] && echo "ok     $1" || echo "FAILED $1 ${3:-}"
}
ready() { # the line that the server prints when it can be asked
    waited=0
    while [ "$waited" -lt 300 ]; do
        line=$(sed -n 's/^READY //p' "$work/ready")
        [ -z "$line" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        waited=$((waited + 1))
        sleep 0.1
    done
    echo "the server did not start:"
    cat "$work/log"
    exit 1
}
stop() {
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
}

# --- asyncua reads ours ------------------------------------------------------------------------------------------------
: >"$work/ready"
# Without a file, its history begins an hour before its start.
"$programs/taktwerk" serve --port 0 --policy None >"$work/ready" 2>"$work/log" &
server=$!
ready
timeout 100 "$peer/bin/python" "$here/asyncua/history.py" client "$line" >"$work/client" 2>"$work/client.log"
cat "$work/client"
count=$(sed -n 's/^count: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/client")
if [ -n "$count" ]; then
    passed=$((passed + ${count% *}))
    failed=$((failed + ${count#* }))
else
    check "asyncua reads our history" 1 "$(tail -3 "$work/client.log")"
fi
stop

# --- ours reads asyncua ------------------------------------------------------------------------------------------------
: >"$work/ready"
"$peer/bin/python" "$here/asyncua/history.py" serve >"$work/ready" 2>"$work/log" &
server=$!
ready
url=${line%% *}
node=${line#* }
"$programs/taktwerk" history "$url" "$node" --policy None --from -1h --csv >"$work/csv" 2>"$work/error"
lines=$(grep -c ',Good$' "$work/csv")
[ "$lines" -ge 200 ]
check "200 values of asyncua are read" $? "$lines $(cat "$work/error")"
grep -q ',199,Good$' "$work/csv"
check "the last value is 199" $?
"$programs/taktwerk" history "$url" "$node" --policy None --from -1h -n 10 --csv >"$work/csv" 2>"$work/error"
[ "$(grep -c ',Good$' "$work/csv")" = 10 ]
check "ten of them" $? "$(cat "$work/csv" "$work/error")"
"$programs/taktwerk" history "$url" "$node" --policy None --from -1h --aggregate Average --every 1m >"$work/csv" 2>"$work/error"
[ $? != 0 ] && grep -q 'cannot read the history' "$work/error"
check "unsupported aggregates give an error that says so" $? "$(cat "$work/error")"

# Its own namespace is the one of the variable.
plant="${node%%;*};s=Plant"
ours() { # arguments of taktwerk; its output is in the files out and error
    timeout 20 "$programs/taktwerk" "$@" >"$work/out" 2>"$work/error"
}
ours events "$url" "$plant" -n 4 --json
[ "$(grep -c "\"SourceNode\":\"$plant\"" "$work/out")" = 4 ]
check "events are received" $? "$(cat "$work/out" "$work/error")"
ours events "$url" "$plant" -n 3 --json --filter "Severity >= 500 and SourceName = 'Plant'"
[ "$(grep -c '"Severity":700' "$work/out")" = 3 ] && ! grep -q '"Severity":300' "$work/out"
check "a where clause holds others back" $? "$(cat "$work/out" "$work/error")"
# It has no Like, and OfType without subtypes.
ours events "$url" "$plant" -n 2 --json --filter 'oftype OffNormalAlarmType' --select ConditionName ActiveState/Id AckedState/Id
[ "$(grep -c '"AckedState/Id":false,"ActiveState/Id":true,"ConditionName":"Alarm"' "$work/out")" = 2 ]
check "an alarm and its states" $? "$(cat "$work/out" "$work/error")"
ours events "$url" "$plant" -n 1 --json --filter 'oftype SystemEventType' -d 1s &&
    [ ! -s "$work/out" ]
check "no event of another type" $? "$(cat "$work/out")"
ours alarms "$url" --list
grep -q 'ConditionRefresh' "$work/error"
check "a server without ConditionRefresh gives an error that says so" $? "$(cat "$work/out" "$work/error")"
stop

echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
