#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A Python virtual environment with the packages pinned in NAME/requirements.txt.
#
#   environment.sh NAME [DIR]   (default target/peers/NAME)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
name=${1:?the name of a folder with requirements.txt}
requirements=$here/$name/requirements.txt
out=${2:-$here/../target/peers/$name}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
now=$(cksum <"$requirements")
if [ -f "$out/stamp" ] && [ "$(cat "$out/stamp")" = "$now" ]; then
    echo "environment.sh: $name is up to date: $out" >&2
    exit 0
fi
python3 -m venv "$out" || {
    echo "environment.sh: python3 with venv is needed (Debian: python3-venv)" >&2
    exit 6
}
"$out/bin/python" -m pip install --quiet --requirement "$requirements"
echo "$now" >"$out/stamp"
echo "environment.sh: $name is ready: $out/bin/python" >&2
