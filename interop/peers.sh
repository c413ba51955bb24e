#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs the laboratory's peers for which this machine has the tools, and tests a connection to each.
#
#   peers.sh [NAME…]      all peers, or the named ones
#   peers.sh quick        peers that can be installed within about a minute, as in continuous integration; without those that need a
#                         long build (open62541 has its own scripts; async-opcua, rumqttd) or a JDK (milo)
#   PROGRAMS=DIR peers.sh use the taktwerk in this directory instead of building it
#
# If a peer cannot be installed, prints the command that helps and exits with 6, or skips it with `quick`. If a peer
# fails its check, exits with 4. The last line is `count: N passed, M failed`, one per peer.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
if [ -n "${PROGRAMS:-}" ]; then
    taktwerk=$PROGRAMS/taktwerk
else
    cargo build --release --quiet -p taktwerk-cli
    taktwerk=${CARGO_TARGET_DIR:-target}/release/taktwerk
fi
[ $# -gt 0 ] || set -- all
is_quick=
case " $* " in
*" quick "*) is_quick=1; set -- python-opcua node-opcua gopcua mosquitto asyncua-pymodbus ;;
*" all "*) set -- open62541 asyncua python-opcua milo node-opcua gopcua async-opcua mosquitto rumqttd \
    asyncua-pymodbus node-red ;;
esac
status=0 passed=0 failed=0
for peer in "$@"; do
    if ! "$taktwerk" lab peers install "$peer"; then
        if [ -n "$is_quick" ]; then
            echo "$peer: skipped, it cannot be installed here"
        else
            status=6
        fi
    elif "$taktwerk" lab peers check "$peer"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) status=4
    fi
done
echo "count: $passed passed, $failed failed"
exit "$status"
