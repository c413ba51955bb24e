#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The npm packages pinned in NAME/package-lock.json.
#
#   node.sh NAME [DIR]   (default target/peers/NAME)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
name=${1:?the name of a folder with package-lock.json}
out=${2:-$here/../target/peers/$name}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
now=$(cat "$here/$name/package.json" "$here/$name/package-lock.json" | cksum)
if [ -f "$out/stamp" ] && [ "$(cat "$out/stamp")" = "$now" ]; then
    echo "node.sh: $name is up to date: $out" >&2
    exit 0
fi
cp "$here/$name/package.json" "$here/$name/package-lock.json" "$out"
(cd "$out" && npm ci --no-audit --no-fund --loglevel=error) >&2 || {
    echo "node.sh: npm cannot install $name" >&2
    exit 6
}
echo "$now" >"$out/stamp"
echo "node.sh: $name is ready: $out/node_modules" >&2
