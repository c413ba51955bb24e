#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The mosquitto broker on one port, open to all clients.   broker.sh --port P [--bind ADDR] [--exit-with-stdin]
# MOSQUITTO names the program. Prints PID and READY when it listens.
set -eu
port=1883
bind=127.0.0.1
stdin=no
while [ $# -gt 0 ]; do
    case $1 in
    --port) port=$2; shift 2 ;;
    --bind) bind=$2; shift 2 ;;
    --exit-with-stdin) stdin=yes; shift ;;
    *) echo "broker.sh: unknown option $1" >&2; exit 2 ;;
    esac
done
work=$(mktemp -d)
broker=''
leave() {
    trap - EXIT TERM INT
    [ -z "$broker" ] || { kill "$broker" 2>/dev/null; wait "$broker" 2>/dev/null; } || true
    rm -rf "$work"
    exit 0
}
trap leave EXIT TERM INT
cat >"$work/conf" <<CONF
listener $port $bind
allow_anonymous true
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 0
persistence false
log_dest stderr
CONF
[ "$(id -u)" != 0 ] || echo "user root" >>"$work/conf"
"${MOSQUITTO:-mosquitto}" -c "$work/conf" 2>"$work/log" &
broker=$!
until grep -q ' running' "$work/log"; do
    kill -0 "$broker" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.05
done
echo "PID $broker"
echo "READY mqtt://$bind:$port"
if [ "$stdin" = yes ]; then
    # In the background, because wait must handle signals; the shell would otherwise close its standard input.
    exec 3<&0
    { cat <&3 >/dev/null; kill "$broker" 2>/dev/null; } &
fi
wait "$broker" || true
