#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs the laboratory's peers that this machine has the tools for, and speaks to each.
#
#   peers.sh [NAME…]      all, or those named
#   peers.sh quick        those that are installed within a minute or so, as continuous integration does: what needs a
#                         build of minutes (open62541 has its own scripts; async-opcua, rumqttd) or a JDK (milo) is left out
#   PROGRAMS=DIR peers.sh takes taktwerk from there instead of building it
#
# A peer that cannot be installed is named with the command that mends it: the exit code is then 6, or with `quick` it is
# skipped. One that does not answer a check makes it 4. The last line is `count: N passed, M failed`, a peer each.
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
