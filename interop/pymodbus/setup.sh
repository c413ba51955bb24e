#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A virtual environment with the pinned pymodbus.   setup.sh [DIR]   (default target/peers/pymodbus)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${1:-$here/../../target/peers/pymodbus}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
now=$(cksum <"$here/requirements.txt")
if [ -f "$out/stamp" ] && [ "$(cat "$out/stamp")" = "$now" ]; then
    echo "setup.sh: up to date: $out" >&2
    exit 0
fi
python3 -m venv "$out" || {
    echo "setup.sh: python3 with venv is needed (Debian: python3-venv)" >&2
    exit 6
}
"$out/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
echo "$now" >"$out/stamp"
echo "setup.sh: ready: $out/bin/python" >&2
