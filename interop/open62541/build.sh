#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds open62541 from the C sources that the pinned crate open62541-sys bundles, and our programs
# o6-server, o6-server-nodiag, o6-client and o6-publisher against it, plus tcp-floor, which needs no library.
#
#   build.sh [OUT_DIR]        default: target/peers/open62541 of the checkout
#   JOBS=n build.sh           parallel jobs, default 2
#   OPTIMIZED=0               for tests of interoperability: built in half of the time, without optimization at link time
#                             and without o6-server-nodiag. Not for OUT_DIR's default: the laboratory measures those
#   PUBSUB_TOO=1              o6-pubsub and o6-pubsub-bench as well (another build of the library, over mbedTLS: its
#                             OpenSSL side has no message security for PubSub)
#   ALARMS_TOO=1              o6-alarms as well: another build of the library, with alarms and the full namespace 0, whose
#                             NodeSet `cargo xtask nodesets` fetches
#
# The programs end up in OUT_DIR/bin. Running it again when nothing has changed takes no time.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${1:-$here/../../target/peers/open62541}
jobs=${JOBS:-2}
optimized=${OPTIMIZED:-1}
pubsub=${PUBSUB_TOO:-0}
alarms=${ALARMS_TOO:-0}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)

say() { echo "build.sh: $*" >&2; }
die() { say "$*"; exit 6; }

stamp=$out/stamp
fingerprint() {
    # Everything that affects the result: sources, this script, the pin, compiler and OpenSSL.
    {
        cat "$here"/src/*.c "$here"/src/*.h "$here"/../floor/*.c "$here/CMakeLists.txt" \
            "$here/Cargo.lock" "$here/build.sh"
        ${CC:-cc} --version 2>/dev/null || true
        openssl version 2>/dev/null || true
        echo "$optimized"
    } | cksum
}
now=$(fingerprint)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && [ -x "$out/bin/o6-client" ] &&
    { [ "$pubsub" = 0 ] || [ "$(cat "$out/pubsub.stamp" 2>/dev/null)" = "$now" ]; } &&
    { [ "$alarms" = 0 ] || [ "$(cat "$out/alarms.stamp" 2>/dev/null)" = "$now" ]; }; then
    say "up to date: $out/bin"
    exit 0
fi

# --- tools ---------------------------------------------------------------------------------------
need=''
command -v cmake >/dev/null || need="$need cmake"
command -v ${CC:-cc} >/dev/null || need="$need gcc libc6-dev"
command -v make >/dev/null || command -v ninja >/dev/null || need="$need make"
command -v python3 >/dev/null || need="$need python3"
echo '#include <openssl/ssl.h>' | ${CC:-cc} -E -x c - >/dev/null 2>&1 || need="$need libssl-dev"
[ "$pubsub" = 0 ] || echo '#include <mbedtls/aes.h>' | ${CC:-cc} -E -x c - >/dev/null 2>&1 ||
    need="$need libmbedtls-dev"
if [ -n "$need" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing:$need"
        # shellcheck disable=SC2086
        apt-get install -y --no-install-recommends $need >&2 ||
            { apt-get update >&2 && apt-get install -y --no-install-recommends $need >&2; } ||
            die "cannot install:$need"
    else
        die "missing:$need (Debian package names); install them and run this again"
    fi
fi
command -v cargo >/dev/null || die "cargo is missing: it fetches the pinned sources"

# --- sources -------------------------------------------------------------------------------------
cargo fetch --locked --quiet --manifest-path "$here/Cargo.toml" || die "cargo fetch failed"
source=$(cargo metadata --locked --format-version 1 --manifest-path "$here/Cargo.toml" |
    python3 -c '
import json, os, sys
for p in json.load(sys.stdin)["packages"]:
    if p["name"] == "open62541-sys":
        print(os.path.join(os.path.dirname(p["manifest_path"]), "open62541"))')
[ -f "$source/CMakeLists.txt" ] || die "open62541-sys does not contain the C sources"

# --- the library ---------------------------------------------------------------------------------
# Everything not named here is the library's own default: reduced namespace 0 (the only complete
# one among the bundled files), subscriptions, methods, events, data access, diagnostics, JSON and
# XML encoding, internal locks, link-time optimisation. The log level removes trace and debug calls
# at compile time, which is to the library's advantage.
if [ "$optimized" = 1 ]; then
    flags='-O3 -DNDEBUG' link_time=ON
else
    flags='-O1 -DNDEBUG' link_time=OFF
fi
library() { # name, extra options
    name=$1
    shift
    if [ -f "$out/$name.stamp" ] && [ "$(cat "$out/$name.stamp")" = "$source $flags $*" ]; then
        return
    fi
    say "building the library ($name), this takes a while"
    rm -rf "$out/$name-build" "${out:?}/$name"
    # The nodeset compiler is Python; it must not write byte code to cargo's source cache.
    PYTHONDONTWRITEBYTECODE=1 cmake -S "$source" -B "$out/$name-build" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="$flags" \
        -DCMAKE_INTERPROCEDURAL_OPTIMIZATION="$link_time" -DCMAKE_INSTALL_PREFIX="$out/$name" -DCMAKE_INSTALL_LIBDIR=lib \
        -DBUILD_SHARED_LIBS=OFF -DUA_ENABLE_ENCRYPTION=OPENSSL -DUA_ENABLE_PUBSUB=ON \
        -DUA_LOGLEVEL=300 "$@" >"$out/$name.log" 2>&1 ||
        die "configuring failed, see $out/$name.log"
    PYTHONDONTWRITEBYTECODE=1 cmake --build "$out/$name-build" --target install -j "$jobs" \
        >>"$out/$name.log" 2>&1 || die "building failed, see $out/$name.log"
    rm -rf "$out/$name-build"
    echo "$source $flags $*" >"$out/$name.stamp"
}

programs() { # library, options
    name=$1
    shift
    # The sources may have another path than the last time, because checkouts share one folder for peers.
    rm -f "$out/programs-$name/CMakeCache.txt"
    cmake -S "$here" -B "$out/programs-$name" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="$flags" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION="$link_time" \
        -DCMAKE_PREFIX_PATH="$out/$name" -DPEER_BIN_DIR="$out/bin" "$@" >"$out/programs-$name.log" 2>&1 &&
        cmake --build "$out/programs-$name" -j "$jobs" >>"$out/programs-$name.log" 2>&1 ||
        die "building our programs failed, see $out/programs-$name.log"
}

mkdir -p "$out/bin"
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -o "$out/bin/tcp-floor" "$here/../floor/tcp-floor.c" ||
    die "building tcp-floor failed"
library library
programs library -DPEER_SERVER_NAME=o6-server -DPEER_CLIENT=ON -DPEER_PUBLISHER=ON
if [ "$optimized" = 1 ]; then
    library library-nodiag -DUA_ENABLE_DIAGNOSTICS=OFF
    programs library-nodiag -DPEER_SERVER_NAME=o6-server-nodiag
fi
if [ "$pubsub" = 1 ]; then
    library library-mbedtls -DUA_ENABLE_ENCRYPTION=MBEDTLS
    programs library-mbedtls -DPEER_PUBSUB=ON
    echo "$now" >"$out/pubsub.stamp"
fi
if [ "$alarms" = 1 ]; then
    # The library has these files only in its repository. Its own lists of identifiers fit any later NodeSet.
    nodesets=$(cd "$here/../.." && cargo xtask nodesets) || die "the published NodeSets cannot be fetched"
    mkdir -p "$out/nodesets/Schema"
    cp "$source"/tools/schema/*.csv "$nodesets/Opc.Ua.NodeSet2.xml" "$nodesets/Opc.Ua.Types.bsd" "$out/nodesets/Schema/" ||
        die "the published NodeSets have no namespace 0"
    library library-alarms -DUA_NAMESPACE_ZERO=FULL -DUA_ENABLE_SUBSCRIPTIONS_ALARMS_CONDITIONS=ON \
        -DUA_NODESET_DIR="$out/nodesets" -DPEER_NODESET="$(cksum <"$out/nodesets/Schema/Opc.Ua.NodeSet2.xml")"
    programs library-alarms -DPEER_ALARMS=ON
    echo "$now" >"$out/alarms.stamp"
fi
echo "$now" >"$stamp"
say "built: $out/bin"
