#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Secured sessions between Taktwerk and its peers open62541 and asyncua, in both directions: every common policy, both
# modes, and users that are anonymous, with a password, or with a certificate; connections that must be refused; and
# security tokens that are renewed repeatedly under load.
#
#   security.sh                 build missing programs like run.sh; 10 renewals in each direction
#   security.sh renewals        only the renewals, 100 in each direction: one and a half minutes
#   RENEWALS=N security.sh …    number of renewals; 0.75 s each
#   TAKTWERK=FILE security.sh   use this taktwerk instead of building one
#   PROGRAMS=DIR security.sh    use the taktwerk in this directory
#   PEERS=DIR security.sh       directory of the peers, default target/peers
#
# Prints a table: + works, F fails, P not supported by the peer (known/security.txt gives the reason; if such a cell
# works, that is a failure, too). The last line is `count: N passed, M failed`.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peers=${PEERS:-$root/target/peers}
o6=$peers/open62541-tests/bin
py=$peers/asyncua/bin/python
part=${1:-all}
case $part in
all) renewals=${RENEWALS:-10} ;;
renewals) renewals=${RENEWALS:-100} ;;
*) echo "usage: security.sh [renewals]" >&2 && exit 2 ;;
esac
OPTIMIZED=0 "$here/open62541/build.sh" "$peers/open62541-tests"
"$here/environment.sh" asyncua "$peers/asyncua"
if [ -n "${PROGRAMS:-}" ]; then
    TAKTWERK=$PROGRAMS/taktwerk
elif [ -z "${TAKTWERK:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli
    TAKTWERK=${CARGO_TARGET_DIR:-$root/target}/release/taktwerk
fi
command -v openssl >/dev/null || { echo "security.sh: openssl is missing" >&2; exit 6; }

work=$(mktemp -d)
servers=''
passed=0
failed=0
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    stop
    if [ "$failed" != 0 ] || [ "$status" != 0 ]; then echo "logs are in $work" >&2; else rm -rf "$work"; fi
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

start() { # name, command of a server that prints READY
    name=$1
    shift
    : >"$work/ready"
    "$@" >"$work/ready" 2>"$work/$name.log" &
    servers="$servers $!"
    waited=0
    while :; do
        url=$(sed -n 's/^READY //p' "$work/ready")
        [ -z "$url" ] || return 0
        kill -0 "$!" 2>/dev/null && [ "$waited" -lt 300 ] || break
        waited=$((waited + 1))
        sleep 0.1
    done
    echo "this server did not start: $*" >&2
    cat "$work/$name.log" >&2
    exit 1
}

stop() {
    for server in $servers; do
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    servers=''
}

# --- certificates -----------------------------------------------------------------------------------------------------

certificate() { # name, ApplicationUri or nothing for a user, arguments of openssl for the key
    name=$1
    uri=$2
    shift 2
    names="DNS:localhost,IP:127.0.0.1"
    [ -z "$uri" ] || names="URI:$uri,$names"
    usage=digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment
    # Some stacks require that self-signed certificates may sign certificates; Ed25519 keys cannot encrypt.
    case $name in *-25519) usage=digitalSignature,nonRepudiation ;; esac
    [ -z "$uri" ] || usage=$usage,keyCertSign
    openssl req -x509 -newkey "$@" -nodes -days 30 -sha256 -subj "/CN=$name" \
        -addext "subjectAltName=$names" -addext "basicConstraints=critical,CA:FALSE" \
        -addext "keyUsage=critical,$usage" -addext "extendedKeyUsage=serverAuth,clientAuth" \
        -keyout "$work/$name.key.pem" -outform DER -out "$work/$name.der" 2>/dev/null
    openssl pkcs8 -topk8 -nocrypt -in "$work/$name.key.pem" -outform DER -out "$work/$name.key.der"
}

key() { # kind of key: what openssl is told
    case $1 in
    rsa) echo rsa:2048 ;;
    p256) echo "ec -pkeyopt ec_paramgen_curve:P-256" ;;
    p384) echo "ec -pkeyopt ec_paramgen_curve:P-384" ;;
    25519) echo ed25519 ;;
    esac
}

kinds="rsa p256 p384 25519"
policies() { # kind of key: the policies that it serves and open62541 has
    case $1 in
    rsa) echo Basic256Sha256 Aes128_Sha256_RsaOaep Aes256_Sha256_RsaPss ;;
    p256) echo ECC_nistP256 ECC_nistP256_AesGcm ECC_nistP256_ChaChaPoly ;;
    p384) echo ECC_nistP384 ;;
    25519) echo ECC_curve25519 ;;
    esac
}

server_pki=$work/taktwerk-server
client_pki=$work/taktwerk-client
mkdir -p "$server_pki/trusted/certs" "$server_pki/users/trusted/certs" "$client_pki/trusted/certs"
for kind in $kinds; do
    # shellcheck disable=SC2046
    {
        certificate "client-$kind" urn:taktwerk:peer:open62541:client $(key "$kind")
        certificate "server-$kind" urn:taktwerk:peer:open62541:server $(key "$kind")
        certificate "user-$kind" "" $(key "$kind")
    }
    cp "$work/client-$kind.der" "$server_pki/trusted/certs"
    cp "$work/user-$kind.der" "$server_pki/users/trusted/certs"
    cp "$work/server-$kind.der" "$client_pki/trusted/certs"
done
certificate asyncua-client urn:taktwerk:peer:asyncua:client rsa:2048
certificate asyncua-server urn:taktwerk:peer:asyncua:server rsa:2048
certificate stranger urn:taktwerk:peer:open62541:client rsa:2048
certificate user-stranger "" rsa:2048
cp "$work/asyncua-client.der" "$server_pki/trusted/certs"
cp "$work/asyncua-server.der" "$client_pki/trusted/certs"

# --- cells ------------------------------------------------------------------------------------------------------------

: >"$work/cells"
: >"$work/reasons"
# Direction, policy, mode and kind of user that a peer does not support; the reason follows the colon.
known() { sed -n 's/^\([^#:]*\):.*/\1/p' "$here/known/security.txt" | grep -qxF "$1"; }

settle() { # "direction policy mode user", whether it worked, reason
    if known "$1"; then
        case $2 in
        yes) mark=F failed=$((failed + 1)) && echo "FAILED $1: works, but known/security.txt says that it cannot" ;;
        *) mark=P passed=$((passed + 1)) && echo "$1: $3" >>"$work/reasons" ;;
        esac
    else
        case $2 in
        yes) mark=+ passed=$((passed + 1)) ;;
        *) mark=F failed=$((failed + 1)) && echo "FAILED $1: $3" ;;
        esac
    fi
    echo "$1 $mark" >>"$work/cells"
}

cell() { # "direction policy mode user", command
    name=$1
    shift
    log=$work/$(echo "$name" | tr ' /' '--').log
    if timeout 30 "$@" >"$log" 2>&1; then settle "$name" yes; else
        settle "$name" no "$(tail -n 1 "$log" | cut -c1-200)"
    fi
}

refused() { # what is tried, command that must not work
    name=$1
    shift
    if timeout 30 "$@" >"$work/refused.log" 2>&1; then
        failed=$((failed + 1))
        echo "FAILED $name was accepted"
    else
        passed=$((passed + 1))
    fi
}

all=''
for kind in $kinds; do all="$all $(policies "$kind")"; done
# shellcheck disable=SC2086
serve() { start taktwerk-server "$TAKTWERK" serve --port 0 --interop --no-plant --signals 100 --pki "$server_pki" --policy $all; }
o6_server() { # kind of key
    start "o6-server-$1" "$o6/o6-server" --port 0 --variables 10 --update 100 --policies all \
        --cert "$work/server-$1.der" --key "$work/server-$1.key.der" --trust-all
}
asyncua_server() {
    start asyncua-server "$py" "$here/asyncua/server.py" --port 0 --variables 10 --update 100 --policies all \
        --cert "$work/asyncua-server.der" --key "$work/asyncua-server.key.pem" --trust-user "$work/user-rsa.der"
}

asyncua_client() { # command, further arguments
    command=$1
    shift
    timeout "${patience:-150}" "$py" "$here/asyncua/client.py" "$command" "$url" --cert "$work/asyncua-client.der" \
        --key "$work/asyncua-client.key.pem" "$@"
}
from_us() { # name of the peer, kind of key, policies
    peer=$1 kind=$2
    shift 2
    for policy in "$@"; do
        for mode in Sign SignAndEncrypt; do
            set -- "$TAKTWERK" read "$url" i=2258 --policy "$policy" --mode "$mode" --pki "$client_pki"
            short=sign
            [ "$mode" = Sign ] || short=encrypt
            cell "tw>$peer $policy $short anonymous" "$@"
            cell "tw>$peer $policy $short user" "$@" -u user1 -p password
            cell "tw>$peer $policy $short x509" "$@" --user-cert "$work/user-$kind.der" --user-key "$work/user-$kind.key.der"
        done
    done
}

let_in() { # clients of others
    echo "Taktwerk server: open62541 and asyncua clients"
    serve
    for kind in $kinds; do
        for policy in $(policies "$kind"); do
            for mode in sign encrypt; do
                set -- "$o6/o6-client" connect "$url" --count 1 --policy "$policy" --mode "$mode" \
                    --cert "$work/client-$kind.der" --key "$work/client-$kind.key.der"
                cell "o6>tw $policy $mode anonymous" "$@"
                cell "o6>tw $policy $mode user" "$@" --user user1 --password password
                cell "o6>tw $policy $mode x509" "$@" --user-cert "$work/user-$kind.der" --user-key "$work/user-$kind.key.der"
                [ "$mode" = encrypt ] || continue
                refused "open62541 client, $policy: a wrong password" "$@" --user user1 --password wrong
            done
        done
    done
    set -- "$o6/o6-client" connect "$url" --count 1 --policy Basic256Sha256 --mode encrypt
    refused "a client that is not trusted" "$@" --cert "$work/stranger.der" --key "$work/stranger.key.der"
    refused "a user who is not trusted" "$@" --cert "$work/client-rsa.der" --key "$work/client-rsa.key.der" \
        --user-cert "$work/user-stranger.der" --user-key "$work/user-stranger.key.der"
    refused "the key of another user" "$@" --cert "$work/client-rsa.der" --key "$work/client-rsa.key.der" \
        --user-cert "$work/user-rsa.der" --user-key "$work/user-stranger.key.der"
    rsa=$(policies rsa | tr ' ' ',')
    asyncua_client matrix --policy "$rsa" --user user1 --password password --user-cert "$work/user-rsa.der" \
        --user-key "$work/user-rsa.key.pem" >"$work/matrix" 2>"$work/matrix.log" || true
    for policy in $(policies rsa); do
        for mode in sign encrypt; do
            for user in anonymous user x509; do
                line=$(grep " $policy $mode $user " "$work/matrix" || echo "failed: no result; $(tail -n 1 "$work/matrix.log")")
                case $line in
                ok*) settle "asyncua>tw $policy $mode $user" yes ;;
                *) settle "asyncua>tw $policy $mode $user" no "$line" ;;
                esac
            done
        done
    done
    stop
}

go_to() { # servers of others
    echo "Taktwerk client: open62541 and asyncua servers"
    for kind in $kinds; do
        o6_server "$kind"
        # shellcheck disable=SC2046
        from_us o6 "$kind" $(policies "$kind")
        stop
    done
    asyncua_server
    # shellcheck disable=SC2046
    from_us asyncua rsa $(policies rsa)
    stop
    # asyncua has no elliptic curves; report a version that has them.
    if "$py" -c 'from asyncua import ua; raise SystemExit(any("ecc" in p.name.lower() for p in ua.SecurityPolicyType))'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED asyncua has elliptic curves now: test them"
    fi
}

if [ "$part" = all ]; then
    let_in
    go_to
fi

# --- renewals under load ----------------------------------------------------------------------------------------------

# A token of 1 s is renewed after 0.75 s. All directions run at the same time: four read without a pause, and our client
# has subscriptions at all three servers, in which no message may be missing.
seconds=$(awk "BEGIN { printf \"%d\", $renewals * 0.76 + 3 }")
patience=$((seconds + 60))
secured="--policy Basic256Sha256 --mode SignAndEncrypt --pki $client_pki"
o6_server rsa
o6_url=$url
asyncua_server
asyncua_url=$url
# Our client creates its certificate with its first connection, our server when it starts.
# shellcheck disable=SC2086
"$TAKTWERK" read "$o6_url" i=2258 $secured >"$work/first.log" 2>&1 || true
cp "$client_pki"/own/certs/* "$server_pki/trusted/certs"
serve
ours_url=$url
cp "$server_pki"/own/certs/* "$client_pki/trusted/certs"
running=''
beside() { # name, command
    name=$1
    shift
    "$@" >"$work/renew-$name.json" 2>"$work/renew-$name.log" &
    running="$running $!"
}
# shellcheck disable=SC2086
ours() { # name, bench, url, further arguments
    name=$1 bench=$2 server=$3
    shift 3
    beside "$name" "$TAKTWERK" bench "$bench" "$server" -d "${seconds}s" --token-lifetime 1s $secured --json "$@"
}
beside o6-tw "$o6/o6-client" renew "$ours_url" --seconds "$seconds" --lifetime 1000 --policy Basic256Sha256 \
    --mode encrypt --cert "$work/client-rsa.der" --key "$work/client-rsa.key.der"
url=$ours_url
beside asyncua-tw asyncua_client renew --seconds "$seconds" --lifetime 1000 --policy Basic256Sha256 --mode encrypt \
    --user user1 --password password
ours tw-o6 read "$o6_url" -c 2 --warmup 0.1s --nodes i=2258
ours tw-asyncua read "$asyncua_url" -c 2 --warmup 0.1s --nodes i=2258
ours tw-o6-values subscribe "$o6_url" --items 10 -I 100 --sampling 100 --queue 10
ours tw-asyncua-values subscribe "$asyncua_url" --items 10 -I 100 --sampling 100 --queue 10
ours tw-tw-values subscribe "$ours_url" --items 100 -I 100 --sampling 0 --queue 10 --update 100
for client in $running; do wait "$client" || true; done
stop
echo
echo "Renewals under load, tokens of 1 s (Basic256Sha256, SignAndEncrypt), at least $renewals each"
"$py" - "$work" "$renewals" >"$work/renewals" <<'END' || true
import json
import pathlib
import sys

work, wanted = pathlib.Path(sys.argv[1]), int(sys.argv[2])
good = 0


def result_of(name):
    try:
        return json.loads((work / f"renew-{name}.json").read_text())
    except ValueError:
        log = (work / f"renew-{name}.log").read_text() + (work / f"renew-{name}.json").read_text()
        return {"error": log[-200:] or "no result"}


def tell(ends, fine, text, result):
    global good
    good += fine
    print(f"  {' > '.join(ends):14} {text}" + ("" if fine else f"  FAILED {result.get('error', '')}"))


for name in ("o6-tw", "asyncua-tw", "tw-o6", "tw-asyncua"):
    result = result_of(name)
    if "ok" in result or "error" in result:
        lost = 0 if result.get("ok") else 1
        reads, renewals = result.get("reads", 0), result.get("renewals", 0)
    else:
        # Two clients, counted together.
        lost = result["failed"] + result["bad"] + result["connections_lost"]
        reads, renewals = result["requests"], result.get("token_renewals", 0) // 2
    fine = lost == 0 and renewals >= wanted and reads > renewals
    tell(name.split("-"), fine, f"{renewals:4} renewals, {reads:8} reads,  {lost} lost", result)
# The number of their renewals is not counted: a channel without renewal ends after 1.25 s.
for name in ("tw-o6", "tw-asyncua", "tw-tw"):
    result = result_of(f"{name}-values")
    progress = result.get("progress", {})
    values, seconds = result.get("notifications", 0), result.get("window_s", 0)
    lost = result.get("lost_messages", 0) + result.get("connections_lost", 1)
    lost += progress.get("overflows", 1) + progress.get("bad", 1)
    if name == "tw-tw":
        # Our own signals change together and each change is queued: no item may have fewer values than another.
        lost += progress.get("max_per_item", 9) - progress.get("min_per_item", 0) > 1
    fine = lost == 0 and seconds >= wanted * 0.75 and values > seconds * 10
    tell(name.split("-"), fine, f"{seconds:4.0f} seconds,  {values:8} values, {lost} lost", result)
print(f"good {good}")
END
grep -v '^good' "$work/renewals" || true
good=$(sed -n 's/^good //p' "$work/renewals")
passed=$((passed + ${good:-0}))
failed=$((failed + 7 - ${good:-0}))
[ "$part" = all ] || { echo "count: $passed passed, $failed failed"; [ "$failed" = 0 ]; exit; }

# --- the table --------------------------------------------------------------------------------------------------------

echo
awk '
    { split($0, f, " "); row = f[2] " " f[3]; if (!(row in seen)) { seen[row] = ++rows; names[rows] = row }
      mark[row, f[1], f[4]] = f[5] }
    END {
        split("o6>tw tw>o6 asyncua>tw tw>asyncua", directions, " "); split("anonymous user x509", users, " ")
        printf "%-32s", "policy and mode"
        for (d = 1; d <= 4; d++) printf " %-11s", directions[d]
        printf "\n%-32s", ""
        for (d = 1; d <= 4; d++) printf " %-11s", "A U X"
        print ""
        for (r = 1; r <= rows; r++) {
            printf "%-32s", names[r]
            for (d = 1; d <= 4; d++) {
                text = ""
                for (u = 1; u <= 3; u++) {
                    it = mark[names[r], directions[d], users[u]]
                    text = text (it == "" ? "." : it) " "
                }
                printf " %-11s", text
            }
            print ""
        }
        print "A anonymous, U user name and password, X certificate; + works, F fails, P unsupported by the peer, . not available"
    }' "$work/cells"
sort -u "$work/reasons" | sed 's/^/P /' | cut -c1-200
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
