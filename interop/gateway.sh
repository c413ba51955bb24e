#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The gateway with a Modbus device of pymodbus, the broker mosquitto, a Sparkplug B host of pysparkplug and OPC UA
# clients: reads and writes values of all types, sends values through the broker and back, and restarts device and
# broker.
#
#   PROGRAMS=DIR gateway.sh    use the taktwerk in this directory instead of building it
#   PEER=DIR                   use the pymodbus in this directory instead of target/peers
#   ASYNCUA=DIR                use the asyncua in this directory instead of target/peers
#   SPARKPLUG=DIR              use the pysparkplug in this directory instead of target/peers
#   TAKTWERK_TEST_MOSQUITTO=required   fail if mosquitto is not installed
#
# The last line is `count: N passed, M failed, K skipped`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peer=${PEER:-$root/target/peers/pymodbus}
asyncua=${ASYNCUA:-$root/target/peers/asyncua}
sparkplug=${SPARKPLUG:-$root/target/peers/sparkplug}

"$here/environment.sh" pymodbus "$peer" || exit 6
"$here/environment.sh" asyncua "$asyncua" || exit 6
if [ -n "${PROGRAMS:-}" ]; then
    taktwerk=$PROGRAMS/taktwerk
else
    cargo build --manifest-path "$root/Cargo.toml" --quiet -p taktwerk-cli
    taktwerk=${CARGO_TARGET_DIR:-$root/target}/debug/taktwerk
fi

work=$(mktemp -d)
device=''
broker=''
server=''
host=''
first=''
second=''
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    for process in $server $device $host $broker $first $second; do
        kill "$process" 2>/dev/null || true
    done
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

passed=0
failed=0
skipped=0
check() { # name, whether it holds
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
        echo "ok     $1"
    else
        failed=$((failed + 1))
        echo "FAILED $1"
        tail -3 "$work/server.log" "$work/read" 2>/dev/null | sed 's/^/  /'
    fi
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

until_ready() { # file, process
    waited=0
    until grep -q '^READY' "$1"; do
        kill -0 "$2" 2>/dev/null && [ "$waited" -lt 600 ] || { echo "it did not start:"; cat "$1" "$work"/*.log; exit 1; }
        waited=$((waited + 1))
        sleep 0.1
    done
}

start_device() {
    : >"$work/device"
    "$peer/bin/python" "$here/pymodbus/device.py" "$modbus" >"$work/device" 2>"$work/device.log" &
    device=$!
    until_ready "$work/device" "$device"
}

start_broker() {
    "$mosquitto" -c "$work/mosquitto.conf" >"$work/broker.log" 2>&1 &
    broker=$!
}

stop() { # process
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Whether a variable has a value, or a status, within a minute.
reads() { # name, text
    waited=0
    while [ "$waited" -lt 300 ]; do
        "$taktwerk" read "$url" "nsu=urn:taktwerk:gateway;s=$1" --policy None --json >"$work/read" 2>&1 || true
        python3 - "$work/read" "$2" <<'END' && return 0
import json, sys
try:
    text = open(sys.argv[1]).read()
    found = json.loads(text)
except ValueError:
    sys.exit(1)
def values(of):
    if isinstance(of, dict):
        for key, one in of.items():
            if key in ("Value", "Status", "StatusCode", "Name", "Symbol", "Body"):
                yield json.dumps(one)
            yield from values(one)
    elif isinstance(of, list):
        for one in of:
            yield from values(one)
sys.exit(sys.argv[2] not in values(found))
END
        waited=$((waited + 1))
        sleep 0.2
    done
    return 1
}

start_plant() { # name
    : >"$work/$1"
    "$asyncua/bin/python" "$here/asyncua/mirror.py" serve "$1" >"$work/$1" 2>"$work/$1.log" &
}

modbus=$(free_port)
start_device
start_plant first
first=$!
start_plant second
second=$!
until_ready "$work/first" "$first"
until_ready "$work/second" "$second"
{
    cat <<CONF
[server]
bind = ["127.0.0.1:0"]
[security]
policies = []
none = true
[identities]
anonymous = true
[[namespace]]
uri = "urn:taktwerk:gateway"
permissions = { Anonymous = ["Browse", "Read", "Write", "ReadHistory", "Call", "ReceiveEvents"] }
# The types of events are in the namespace of the specification.
[[namespace]]
uri = "http://opcfoundation.org/UA/"
permissions = { Anonymous = ["Browse", "Read", "ReceiveEvents"] }
[[source]]
name = "plant"
type = "opcua"
url = ["$(sed -n 's/^READY //p' "$work/first")", "$(sed -n 's/^READY //p' "$work/second")"]
mirror = "nsu=urn:example:asyncua;s=Plant"
publishing_interval = "1 s"
# Longer than any check waits: a switch with a pause after a failure fails.
retry = "10 min"
retry_max = "10 min"
[[source]]
name = "device"
type = "modbus"
address = "127.0.0.1:$modbus"
interval = "100 ms"
retry = "100 ms"
retry_max = "500 ms"
lost_after = "2 s"
CONF
    tag() { # name, settings
        printf '[[tag]]\nsource = "device"\nname = "%s"\n%s\n' "$1" "$2"
    }
    tag Int16 'address = "holding:0"
format = "int16"
scale = 0.5'
    tag Setpoint 'address = "40002"
access = "read-write"'
    tag Float32 'address = "holding:10"
format = "float32"'
    tag Int32 'address = "holding:12"
format = "int32"'
    tag Float64 'address = "holding:14"
format = "float64"'
    tag UInt64 'address = "holding:18"
format = "uint64"'
    tag Text 'address = "holding:30"
format = "string"
length = 8'
    tag List 'address = "holding:40"
format = "uint16"
count = 3'
    tag Coil 'address = "coil:2"'
    tag Discrete 'address = "discrete:1"'
    tag Input 'address = "input:2"'
    tag Missing 'address = "holding:5"'
    tag Second 'address = "holding:0"
unit = 2'
} >"$work/gateway.toml"

mosquitto=$(command -v mosquitto || command -v /usr/sbin/mosquitto || true)
if [ -n "$mosquitto" ]; then
    port=$(free_port)
    {
        echo "listener $port 127.0.0.1"
        echo 'allow_anonymous true'
        [ "$(id -u)" != 0 ] || echo 'user root'
    } >"$work/mosquitto.conf"
    start_broker
    cat >>"$work/gateway.toml" <<CONF
[[source]]
name = "back"
type = "mqtt"
url = "mqtt://127.0.0.1:$port"
retry = "100 ms"
retry_max = "500 ms"
lost_after = "2 s"
[[tag]]
source = "back"
name = "Setpoint"
topic = "plant/device/Setpoint"
json = "$.value"
[[destination]]
name = "broker"
type = "mqtt"
url = "mqtt://127.0.0.1:$port"
topic = "plant/{tag}"
retain = true
tags = ["device/*"]
retry = "100 ms"
retry_max = "500 ms"
CONF
    if "$here/environment.sh" sparkplug "$sparkplug"; then
        waited=0
        until python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$port" 2>/dev/null; do
            waited=$((waited + 1))
            [ "$waited" -lt 100 ] || { echo "mosquitto does not listen" >&2; exit 1; }
            sleep 0.1
        done
        # The device below is queried repeatedly, so its standard input stays open.
        mkfifo "$work/asked"
        "$sparkplug/bin/python" "$here/sparkplug/host.py" "$port" Interop <"$work/asked" >"$work/host" 2>"$work/host.log" &
        host=$!
        exec 3>"$work/asked"
        until_ready "$work/host" "$host"
        cat >>"$work/gateway.toml" <<CONF
[[destination]]
name = "edge"
type = "sparkplug"
url = "mqtt://127.0.0.1:$port"
group = "Interop"
node = "Gateway"
tags = ["device/*"]
retry = "100 ms"
retry_max = "500 ms"
CONF
    else
        echo "Sparkplug: skipped, pysparkplug cannot be installed"
        skipped=$((skipped + 1))
    fi
else
    [ "${TAKTWERK_TEST_MOSQUITTO:-}" != required ] || { echo "mosquitto is not installed" >&2; exit 6; }
    echo "broker: skipped, mosquitto is not installed (Debian package mosquitto)"
    skipped=$((skipped + 1))
fi
chmod 600 "$work/gateway.toml"

: >"$work/server"
"$taktwerk" serve --config "$work/gateway.toml" >"$work/server" 2>"$work/server.log" &
server=$!
until_ready "$work/server" "$server"
url=$(sed -n 's/^READY //p' "$work/server")

while read -r name value; do
    outcome=0
    reads "device/$name" "$value" || outcome=1
    check "pymodbus: $name is $value" $outcome
done <<'END'
Int16 -107.5
Setpoint 60
Float32 1.5
Int32 -1234567
Float64 2.25
Text "pymodbus"
List [1, 2, 3]
Coil true
Discrete false
Input 19
Second 7
END
outcome=0
reads device/UInt64 '"9223372036854775809"' || reads device/UInt64 9223372036854775809 || outcome=1
check "pymodbus: UInt64 is 9223372036854775809" $outcome

set_point() { "$taktwerk" write "$url" 'nsu=urn:taktwerk:gateway;s=device/Setpoint' "$1" --policy None >>"$work/server.log" 2>&1; }
outcome=0
set_point 75 && reads device/Setpoint 75 || outcome=1
check "pymodbus: a write reaches the device and is read back" $outcome
if [ -n "$mosquitto" ]; then
    outcome=0
    reads back/Setpoint 75.0 || outcome=1
    check "mosquitto: a value goes to the broker and comes back" $outcome
    if [ -n "$host" ]; then
        # The host was not running before: it requests a birth and then has all values.
        echo Gateway >&3
        while read -r line; do
            outcome=0
            waited=0
            until sed -n '/^NBIRTH/,$p' "$work/host" | grep -qxF "  $line"; do
                waited=$((waited + 1))
                [ "$waited" -lt 300 ] || { outcome=1; break; }
                sleep 0.2
            done
            check "pysparkplug: $line" $outcome
        done <<'END'
Node Control/Rebirth = False
Int16 = -107.5
Float32 = 1.5
Text = pymodbus
List = (1, 2, 3)
Coil = True
Setpoint = 75
END
    fi
    stop "$broker"
    outcome=0
    set_point 80 && reads device/Setpoint 80 && set_point 85 && reads device/Setpoint 85 || outcome=1
    start_broker
    reads back/Setpoint 85.0 || outcome=1
    check "mosquitto: values from during the broker outage arrive" $outcome
fi
stop "$device"
device=''
outcome=0
waited=0
until "$taktwerk" read "$url" 'nsu=urn:taktwerk:gateway;s=device/Int32' --policy None 2>&1 | grep -q NoCommunication; do
    waited=$((waited + 1))
    [ "$waited" -lt 300 ] || { outcome=1; break; }
    sleep 0.2
done
check "pymodbus: without the device its values are Bad_NoCommunication" $outcome
start_device
outcome=0
reads device/Int32 -1234567 || outcome=1
check "pymodbus: values return with the device" $outcome

timeout 120 "$asyncua/bin/python" "$here/asyncua/mirror.py" check "$url" >"$work/asyncua" 2>"$work/asyncua.log" || true
grep -v '^count' "$work/asyncua" || true
count=$(sed -n 's/^count: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/asyncua")
if [ -n "$count" ]; then
    passed=$((passed + ${count% *}))
    failed=$((failed + ${count#* }))
else
    check "asyncua reads through the gateway" 1
    tail -3 "$work/asyncua.log"
fi
outcome=0
reads plant/Boiler/Name '"first"' || outcome=1
kill -STOP "$first"
reads plant/Boiler/Name '"second"' || outcome=1
check "asyncua: the second server takes over when the first hangs" $outcome
kill -CONT "$first"
# A server that has served for an interval is not one of two that fail in turn.
sleep 2
outcome=0
kill -9 "$second"
wait "$second" 2>/dev/null || true
second=''
reads plant/Boiler/Name '"first"' || outcome=1
check "asyncua: the first server takes over when the second is killed" $outcome

echo "count: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
