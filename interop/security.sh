#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Secured sessions between Taktwerk and open62541, both ways: every policy that both have, both modes, anonymous users
# and, with RSA, users with a password.
#
#   security.sh                 builds what is missing, as run.sh does
#   TAKTWERK=FILE security.sh   takes this taktwerk instead of building one
#   PEERS=DIR security.sh       where the peers are or will be built, default target/peers
#
# A line per combination that fails; the last line is `count: N passed, M failed`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peers=${PEERS:-$root/target/peers}
o6=$peers/open62541/bin
[ -x "$o6/o6-server-nodiag" ] || export DIAGNOSTICS_TOO=0
[ -x "$o6/o6-client" ] || "$here/open62541/build.sh" "$peers/open62541"
if [ -z "${TAKTWERK:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli
    TAKTWERK=${CARGO_TARGET_DIR:-$root/target}/release/taktwerk
fi
command -v openssl >/dev/null || { echo "security.sh: openssl is missing" >&2; exit 6; }

work=$(mktemp -d)
server=''
passed=0
failed=0
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    [ "$failed" != 0 ] && echo "logs are in $work" >&2 || rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

start() { # command of a server that prints READY
    : >"$work/ready"
    "$@" >"$work/ready" 2>"$work/server.log" &
    server=$!
    waited=0
    while :; do
        url=$(sed -n 's/^READY //p' "$work/ready")
        [ -z "$url" ] || return 0
        kill -0 "$server" 2>/dev/null && [ "$waited" -lt 200 ] || break
        waited=$((waited + 1))
        sleep 0.1
    done
    echo "this server did not start: $*" >&2
    cat "$work/server.log" >&2
    exit 1
}

stop() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=''
}

certificate() { # name, URI, arguments of openssl for the key
    name=$1
    uri=$2
    shift 2
    openssl req -x509 -newkey "$@" -nodes -days 30 -sha256 -subj "/CN=$name" \
        -addext "subjectAltName=URI:$uri,DNS:localhost,IP:127.0.0.1" \
        -addext "basicConstraints=critical,CA:FALSE" \
        -addext "keyUsage=critical,digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment,keyCertSign" \
        -addext "extendedKeyUsage=serverAuth,clientAuth" \
        -keyout "$work/$name.key.pem" -outform DER -out "$work/$name.der" 2>/dev/null
    openssl pkcs8 -topk8 -nocrypt -in "$work/$name.key.pem" -outform DER -out "$work/$name.key.der"
}

attempt() { # name, command
    name=$1
    shift
    if timeout 20 "$@" >"$work/out.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name: $(tail -n 1 "$work/out.log" | cut -c1-160)"
        cp "$work/out.log" "$work/$(echo "$name" | tr ' /' '--').log"
    fi
}

client_uri=urn:taktwerk:peer:open62541:client
server_uri=urn:taktwerk:peer:open62541:server
certificate client-rsa "$client_uri" rsa:2048
certificate client-p256 "$client_uri" ec -pkeyopt ec_paramgen_curve:P-256
certificate server-rsa "$server_uri" rsa:2048
certificate server-p256 "$server_uri" ec -pkeyopt ec_paramgen_curve:P-256

rsa="Basic256Sha256 Aes128_Sha256_RsaOaep Aes256_Sha256_RsaPss"
p256="ECC_nistP256_AesGcm ECC_nistP256_ChaChaPoly"

echo "open62541 clients, Taktwerk server"
mkdir -p "$work/taktwerk-server/trusted/certs"
cp "$work/client-rsa.der" "$work/client-p256.der" "$work/taktwerk-server/trusted/certs"
# shellcheck disable=SC2086
start "$TAKTWERK" serve --port 0 --interop --no-plant --pki "$work/taktwerk-server" --policy $rsa $p256
for policy in $rsa $p256; do
    kind=rsa
    case $policy in ECC_*) kind=p256 ;; esac
    for mode in sign encrypt; do
        set -- "$o6/o6-client" connect "$url" --count 2 --policy "$policy" --mode "$mode" \
            --cert "$work/client-$kind.der" --key "$work/client-$kind.key.der"
        attempt "open62541 client, $policy $mode anonymous" "$@"
        # Passwords over ephemeral keys wait for our sessions to exchange those.
        [ "$kind" = p256 ] || attempt "open62541 client, $policy $mode user" "$@" --user user1 --password password
    done
done
stop

echo "Taktwerk clients, open62541 server"
for kind in rsa p256; do
    policies=$rsa
    [ "$kind" = rsa ] || policies=$p256
    mkdir -p "$work/taktwerk-client/trusted/certs"
    cp "$work/server-$kind.der" "$work/taktwerk-client/trusted/certs"
    start "$o6/o6-server" --port 0 --variables 10 --update 100 --policies all \
        --cert "$work/server-$kind.der" --key "$work/server-$kind.key.der" --trust-all
    for policy in $policies; do
        for mode in Sign SignAndEncrypt; do
            set -- "$TAKTWERK" read "$url" i=2258 --policy "$policy" --mode "$mode" --pki "$work/taktwerk-client"
            attempt "Taktwerk client, $policy $mode anonymous" "$@"
            [ "$kind" = p256 ] || attempt "Taktwerk client, $policy $mode user" "$@" -u user1 -p password
        done
    done
    stop
done

echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
