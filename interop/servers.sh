#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs the servers and libraries that the tests of crates/gateway find below target/peers: InfluxDB 1 and a NATS server
# (built with Go), Apache Kafka (its jars, with Maven), pysparkplug and pyarrow (in Python environments).
#
#   servers.sh                               installs what is missing
#   TAKTWERK_TEST_SERVERS=required           fails if one of them cannot be installed; the tests that need one fail, too
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
peers=$(CDPATH='' cd -- "$here/.." && pwd)/target/peers
influx_version=v1.7.11
nats_version=v2.11.8

missing=''
lacks() { # name, reason
    echo "servers.sh: $1: $2" >&2
    missing="$missing $1"
}

# A file named after the version says that it is installed.
build() { # name, version, package, program
    if [ -x "$peers/$1/$4" ] && [ -f "$peers/$1/$2" ]; then
        return
    fi
    go=$(command -v go || command -v /usr/local/go/bin/go) || { lacks "$1" 'go is missing'; return; }
    if GOBIN=$peers/$1 "$go" install "$3@$2"; then
        : >"$peers/$1/$2"
    else
        lacks "$1" 'cannot be built'
    fi
}

build influxdb "$influx_version" github.com/influxdata/influxdb/cmd/influxd influxd
build nats "$nats_version" github.com/nats-io/nats-server/v2 nats-server

jars=$peers/kafka
if [ ! -f "$jars/complete" ] || [ "$here/kafka/pom.xml" -nt "$jars/complete" ]; then
    if ! command -v mvn >/dev/null; then
        lacks kafka 'mvn is missing'
    elif rm -rf "$jars" && mvn -q -B -f "$here/kafka/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars"; then
        : >"$jars/complete"
    else
        lacks kafka 'its jars cannot be fetched'
    fi
fi
command -v java >/dev/null || lacks kafka 'java is missing'

for name in sparkplug pyarrow; do
    "$here/environment.sh" "$name" || lacks "$name" 'cannot be installed'
done

if [ -n "$missing" ] && [ "${TAKTWERK_TEST_SERVERS:-}" = required ]; then
    echo "servers.sh: required, but missing:$missing" >&2
    exit 6
fi
