#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# PubSub over MQTT brokers: `taktwerk pubsub publish` and `listen` with mosquitto and with the MQTT interface of a NATS
# server between them, and a broker restart while both run.
#
#   brokers.sh [BROKER…]     mosquitto, nats; default both
#   PROGRAMS=DIR             use the taktwerk in this directory instead of building it
#   NATS_INSTALL=1           install a NATS server with `go install` if there is none
#
# A broker that is missing is skipped, with the reason. The last line is `count: N passed, M failed, K skipped`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
nats_version=v2.11.8
nats_place=$root/target/peers/nats

if [ -n "${PROGRAMS:-}" ]; then
    taktwerk=$PROGRAMS/taktwerk
else
    cargo build --manifest-path "$root/Cargo.toml" --quiet -p taktwerk-cli
    taktwerk=${CARGO_TARGET_DIR:-$root/target}/debug/taktwerk
fi

work=$(mktemp -d)
broker=''
publisher=''
listener=''
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    for process in $listener $publisher $broker; do
        kill "$process" 2>/dev/null || true
    done
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

listens() { python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)' "$1" 2>/dev/null; }

passed=0
failed=0
skipped=0

verdict() { # name, yes or no
    if [ "$2" = yes ]; then
        passed=$((passed + 1))
        echo "$1: ok"
    else
        failed=$((failed + 1))
        echo "$1: FAILED"
        tail -5 "$work/publish.log" "$work/listen.log" "$work/broker.log" 2>/dev/null | sed 's/^/  /'
    fi
}

find_program() { # broker
    case $1 in
    mosquitto)
        for place in mosquitto /usr/sbin/mosquitto /usr/local/sbin/mosquitto; do
            command -v $place && return
        done
        reason='not installed (Debian package mosquitto)'
        ;;
    nats)
        command -v nats-server && return
        if [ -x "$nats_place/nats-server" ]; then
            echo "$nats_place/nats-server"
            return
        fi
        go=$(command -v go || command -v /usr/local/go/bin/go || true)
        if [ "${NATS_INSTALL:-0}" = 1 ] && [ -n "$go" ]; then
            GOBIN=$nats_place "$go" install "github.com/nats-io/nats-server/v2@$nats_version" >&2 && {
                echo "$nats_place/nats-server"
                return
            }
        fi
        reason='not installed (NATS_INSTALL=1 gets it where there is Go)'
        ;;
    esac
    echo "$1: skipped, $reason" >&2
    return 1
}

start_broker() { # broker, program, port
    case $1 in
    mosquitto)
        {
            echo "listener $3 127.0.0.1"
            echo 'allow_anonymous true'
            echo 'persistence false'
            [ "$(id -u)" != 0 ] || echo 'user root'
        } >"$work/conf"
        "$2" -c "$work/conf" >"$work/broker.log" 2>&1 &
        ;;
    nats)
        cat >"$work/conf" <<CONF
server_name: taktwerk
listen: "127.0.0.1:$(free_port)"
jetstream { store_dir: "$work/nats" }
mqtt { listen: "127.0.0.1:$3" }
CONF
        "$2" -c "$work/conf" >"$work/broker.log" 2>&1 &
        ;;
    esac
    broker=$!
    waited=0
    until listens "$3" || [ $waited -ge 100 ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
}

stop() { # process
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Whether the listener has received this many messages with field names, without a gap.
heard() {
    python3 - "$work/out" "$1" <<'END'
import json, sys

lines = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
named = [l for l in lines if "s1" in l.get("Fields", {}) and "s2" in l["Fields"]]
numbers = [l["SequenceNumber"] for l in named if l["SequenceNumber"] is not None]
in_order = all(b > a for a, b in zip(numbers, numbers[1:]))
sys.exit(not (len(named) >= int(sys.argv[2]) and in_order))
END
}

until_heard() { # messages
    waited=0
    until heard "$1"; do
        waited=$((waited + 1))
        [ $waited -lt 150 ] || return 1
        sleep 0.2
    done
}

both() { # url, flags
    url=$1
    shift
    : >"$work/out"
    "$taktwerk" pubsub listen "$url" "$@" --json -d 60 >"$work/out" 2>"$work/listen.log" &
    listener=$!
    "$taktwerk" pubsub publish "$url" "$@" --signals 2 -I 20 -d 60 >"$work/sent" 2>"$work/publish.log" &
    publisher=$!
}

end_both() {
    stop "$publisher"
    stop "$listener"
    publisher=''
    listener=''
}

for name in ${*:-mosquitto nats}; do
    if ! program=$(find_program "$name"); then
        skipped=$((skipped + 1))
        continue
    fi
    port=$(free_port)
    start_broker "$name" "$program" "$port"
    versions='3.1.1'
    # The MQTT interface of NATS supports only 3.1.1.
    [ "$name" = nats ] || versions='3.1.1 5'
    for version in $versions; do
        for scheme in mqtt mqtt+json; do
            for qos in 0 1 2; do
                both "$scheme://127.0.0.1:$port" --mqtt "$version" --qos $qos
                if until_heard 20; then outcome=yes; else outcome=no; fi
                end_both
                verdict "$name-$scheme-$version-qos$qos" $outcome
            done
        done
    done
    both "mqtt://127.0.0.1:$port"
    outcome=no
    if until_heard 10; then
        stop "$broker"
        sleep 1
        start_broker "$name" "$program" "$port"
        before=$(wc -l <"$work/out")
        until_heard $((before + 20)) && outcome=yes
    fi
    end_both
    verdict "$name-gone-and-back" $outcome
    stop "$broker"
    broker=''
done
echo "count: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
