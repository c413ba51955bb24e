#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# asyncua as a client of our server: it adds and deletes nodes, finds aliases, reads and writes the files of a shared
# folder, makes a subscription durable and gets its values after the server was killed, runs a state machine, reads
# events of a NodeSet's type, and manages users and roles.
#
#   PROGRAMS=DIR nodes.sh       use the taktwerk in this directory instead of building it
#   PEER=DIR nodes.sh           use the asyncua in this directory instead of target/peers
#
# The last line is `count: N passed, M failed`.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
peer=${PEER:-$root/target/peers/asyncua}
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}
"$here/environment.sh" asyncua "$peer" || exit 6
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli || exit
fi

work=$(mktemp -d)
server=''
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

mkdir "$work/recipes"
printf flour >"$work/recipes/bread.txt"
cat >"$work/server.toml" <<END
[server]
bind = ["127.0.0.1:0"]
[security]
policies = []
none = true
[identities]
anonymous = true
[permissions]
unspecified = "open"
[node_management]
enabled = true
[[files]]
name = "Recipes"
folder = "recipes"
write = ["Anonymous"]
END
certificate=$work/client.der
key=$work/client.pem
mkdir -p "$work/pki/trusted/certs"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -sha256 -subj "/CN=client" \
    -addext "subjectAltName=URI:urn:taktwerk:peer:asyncua:client,DNS:localhost" -addext "basicConstraints=critical,CA:FALSE" \
    -addext "keyUsage=critical,digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment,keyCertSign" \
    -addext "extendedKeyUsage=serverAuth,clientAuth" -keyout "$key" -outform DER -out "$certificate" 2>/dev/null || exit 6
cp "$certificate" "$work/pki/trusted/certs"
echo secret-one | "$programs/taktwerk" user add sara --role SecurityAdmin --file "$work/users.toml" \
    --password-file - >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat >"$work/users-server.toml" <<END
[server]
bind = ["127.0.0.1:0"]
[security]
pki = "pki"
policies = ["Basic256Sha256"]
[identities]
users_file = "users.toml"
END
cat >"$work/typed-server.toml" <<END
[server]
bind = ["127.0.0.1:0"]
simulated_plant = true
nodesets = ["$root/crates/taktwerk/tests/typed_events/pumps.NodeSet2.xml"]
[security]
none = true
policies = []
[identities]
anonymous = true
[permissions]
unspecified = "open"
[[alarms.alarm]]
variable = "nsu=urn:taktwerk:demo-plant;s=Plant/TemperatureSetpoint"
name = "Changed"
normal = 80.0
type = "nsu=urn:example:pumps;i=1003"
fields = { Cause = "by hand" }
END

passed=0
failed=0
start() { # arguments of taktwerk
    : >"$work/ready"
    "$programs/taktwerk" serve "$@" >"$work/ready" 2>"$work/log" &
    server=$!
    waited=0
    url=''
    while [ "$waited" -lt 300 ] && [ -z "$url" ]; do
        url=$(sed -n 's/^READY //p' "$work/ready")
        kill -0 "$server" 2>/dev/null || break
        waited=$((waited + 1))
        sleep 0.1
    done
    [ -n "$url" ] || { echo "the server did not start:"; cat "$work/log"; exit 1; }
}
stop() { # signal
    kill -s "$1" "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=''
}
run() { # program in asyncua/, its arguments
    program=$1
    shift
    timeout 100 "$peer/bin/python" "$here/asyncua/$program" "$@" >"$work/out" 2>"$work/error"
    code=$?
    grep -v '^count: ' "$work/out"
    [ "$code" = 0 ] || { grep -A1 "$program" "$work/error" | tail -4; tail -1 "$work/error"; }
    # It may have ended before its last line.
    count=$(sed -n 's/^count: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/out")
    set -- ${count:-0 1}
    passed=$((passed + $1))
    failed=$((failed + $2))
}

start --config "$work/server.toml"
run nodes.py "$url"
stop TERM
set -- --port 0 --interop --no-plant --pki "$work/durable-pki" --durable "$work/subscriptions.db"
start "$@"
run durable.py leave "$url" "$work/subscription"
stop KILL
start "$@"
run durable.py return "$url" "$work/subscription"
stop TERM
start --port 0 --pki "$work/demo-pki"
run machines.py "$url"
stop TERM
start --config "$work/typed-server.toml"
run typed_events.py "$url"
stop TERM
start --config "$work/users-server.toml"
run users.py "$url" "$certificate" "$key"
stop TERM
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
