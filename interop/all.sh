#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs everything with other stacks: run.sh, pubsub.sh, brokers.sh, security.sh, history.sh, nodes.sh, events.sh,
# gateway.sh, capture.sh and the laboratory's quick peers, in parallel, because each of them mostly waits.
#
#   PROGRAMS=DIR all.sh     use the programs in this directory instead of building them
#
# Prints the output of each, one after the other, and exits with 1 if one failed.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
peers=$(CDPATH='' cd -- "$here/.." && pwd)/target/peers
OPTIMIZED=0 PUBSUB_TOO=1 "$here/open62541/build.sh" "$peers/open62541-tests" || exit
"$here/environment.sh" asyncua "$peers/asyncua" || exit

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for script in run pubsub brokers security history nodes events gateway capture peers; do
    arguments=''
    [ "$script" != peers ] || arguments=quick
    {
        # shellcheck disable=SC2086 # none or one
        "$here/$script.sh" $arguments >"$logs/$script" 2>&1
        echo $? >"$logs/$script.status"
    } &
done
wait
status=0
for script in run pubsub brokers security history nodes events gateway capture peers; do
    echo "== $script.sh"
    cat "$logs/$script"
    [ "$(cat "$logs/$script.status")" = 0 ] || { echo "$script.sh ended with $(cat "$logs/$script.status")"; status=1; }
done
exit $status
