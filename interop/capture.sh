#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Captures of simulated links (`taktwerk sim --pcap`), read by tshark: TCP without errors, and OPC UA in it.
#
#   PROGRAMS=DIR capture.sh     use the taktwerk in this directory instead of building it
#
# The last line is `count: N passed, M failed`.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/.." && pwd)
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-$root/target}/release}
if ! command -v tshark >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    install() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends tshark >&2; }
    install || { apt-get update >&2 && install; }
fi
command -v tshark >/dev/null || { echo "capture.sh: tshark is missing: install it" >&2; exit 6; }
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --quiet -p taktwerk-cli || exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
check() { # name, whether it holds, detail
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    [ "$2" = 0 ] && echo "ok     $1" || echo "FAILED $1 ${3:-}"
}
simulate() { # file, loss
    cat >"$work/plant.toml" <<PLANT
name = "capture"
[time]
warmup_s = 1
duration_s = 10
[[link]]
name = "line"
profile = "ethernet-100m"
delay = "3ms"
loss = "$2"
[[server]]
name = "plc"
[[server.signals]]
count = 200
period_ms = 100
[[client]]
name = "scada"
count = 3
server = "plc"
link = "line"
publishing_ms = 200
[[client]]
name = "report"
kind = "read"
server = "plc"
link = "line"
batch = 50
every_ms = 500
[[fault]]
at = "3s"
kind = "cut"
client = "scada"
number = 1
PLANT
    "$programs/taktwerk" sim "$work/plant.toml" --seeds 1 --pcap "line=$1" >"$work/log" 2>&1
}
count() { # file, display filter
    tshark -r "$1" -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -Y "$2" 2>/dev/null | wc -l
}
services() { # file, id of the binary encoding: how many messages
    tshark -r "$1" -Y opcua -T fields -e opcua.servicenodeid.numeric 2>/dev/null | tr ',' '\n' | grep -cx "$2"
}
whole() { # file, name: what holds for each capture
    check "$2: written" "$([ -s "$1" ]; echo $?)" "$(cat "$work/log")"
    bad=$(count "$1" 'ip.checksum.status == "Bad" || tcp.checksum.status == "Bad"')
    check "$2: checksums" "$([ "$bad" = 0 ]; echo $?)" "$bad packets"
    unseen=$(count "$1" 'tcp.analysis.ack_lost_segment || tcp.analysis.zero_window')
    check "$2: no acknowledgement of unsent data" "$([ "$unseen" = 0 ]; echo $?)" "$unseen packets"
}

simulate "$work/clean.pcap" "0%"
whole "$work/clean.pcap" "clean line"
odd=$(count "$work/clean.pcap" '_ws.malformed || tcp.analysis.retransmission || tcp.analysis.lost_segment || tcp.analysis.out_of_order')
check "clean line: no malformed, lost or retransmitted packets" "$([ "$odd" = 0 ]; echo $?)" "$odd packets"
other=$(count "$work/clean.pcap" 'tcp.len > 0 && !opcua && !tcp.segment_data')
check "clean line: all bytes are OPC UA" "$([ "$other" = 0 ]; echo $?)" "$other packets"
# Three subscribers for 11 s with a message every 200 ms; a report every 500 ms.
published=$(services "$work/clean.pcap" 829)
check "clean line: PublishResponses" "$([ "$published" -ge 150 ]; echo $?)" "$published"
for pair in 446/449 461/464 467/470 631/634 751/754 787/790; do
    asked=$(services "$work/clean.pcap" "${pair%/*}")
    answered=$(services "$work/clean.pcap" "${pair#*/}")
    check "clean line: requests $pair are answered" "$([ "$asked" -ge 3 ] && [ "$asked" = "$answered" ]; echo $?)" "$asked $answered"
done

simulate "$work/lossy.pcap" "2%"
whole "$work/lossy.pcap" "lossy line"
again=$(count "$work/lossy.pcap" 'tcp.analysis.retransmission')
check "lossy line: lost packets are retransmitted" "$([ "$again" -ge 5 ]; echo $?)" "$again packets"
published=$(services "$work/lossy.pcap" 829)
check "lossy line: PublishResponses" "$([ "$published" -ge 150 ]; echo $?)" "$published"

echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
