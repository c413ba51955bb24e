#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs every peer of the laboratory that this machine has the tools for, and speaks to each.   peers.sh [NAME…]
# A peer that cannot be installed is named with the command that mends it, and the exit code is then 6; one that does not
# answer a check makes it 4.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
cargo build --release --quiet -p taktwerk-cli
taktwerk=${CARGO_TARGET_DIR:-target}/release/taktwerk
[ $# -gt 0 ] || set -- all
status=0
"$taktwerk" lab peers install "$@" || status=$?
case " $* " in
*" all "*) "$taktwerk" lab peers check || status=$? ;;
*) "$taktwerk" lab peers check "$@" || status=$? ;;
esac
exit "$status"
