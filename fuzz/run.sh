#!/usr/bin/env bash
# Runs every fuzz target for a short time, one per processor in parallel; any crash fails.
#
#   fuzz/run.sh [SECONDS]                         seconds per target, 10 unless given
#   FUZZ_SANITIZER=address fuzz/run.sh 60
#
# Needs a nightly compiler. The tests of the workspace replay committed inputs and reproducible mutations with the
# stable one.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-10}
# The workspace forbids unsafe code, so a sanitizer finds little more than panics; without one, fuzzing is twice as
# fast.
sanitizer=${FUZZ_SANITIZER:-none}

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "a nightly compiler is missing: rustup toolchain install nightly --profile minimal" >&2
    exit 6
fi
host=$(rustc +nightly --version --verbose | sed -n 's/^host: //p')
export bin="${CARGO_TARGET_DIR:-../target}/$host/fuzz" seconds
# The flags of cargo-fuzz, without the minute for installing it, and with more than one codegen unit: libFuzzer's
# coverage (counters, comparisons, stack depth), and `fuzzing` for crates that then disable checks of their own.
coverage=(level=4 inline-8bit-counters pc-table trace-compares stack-depth)
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
for option in "${coverage[@]}"; do flags+=" -Cllvm-args=-sanitizer-coverage-$option"; done
[ "$sanitizer" = none ] || flags+=" -Zsanitizer=$sanitizer"
# One binary with all targets: linking nearly forty would take longer than running them here. The target is named so
# that the flags do not apply to build scripts.
RUSTFLAGS=$flags cargo +nightly build --locked --profile fuzz -p taktwerk-fuzz --features libfuzzer --target "$host" --bin any
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs

one() {
    target=$1
    # New inputs go into the first folder, which is not committed.
    mkdir -p "corpus/$target" "artifacts/$target"
    dictionary=()
    case $target in x509_* | certificate_*) dictionary=(-dict=asn1.dict) ;; esac
    if TAKTWERK_FUZZ_TARGET=$target "$bin/any" "corpus/$target" "seeds/$target" "${dictionary[@]}" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 >"$logs/$target" 2>&1; then
        printf '%-26s %s\n' "$target" "$(grep -o 'DONE.*' "$logs/$target" | head -1)"
    else
        printf '%-26s FAILED\n' "$target"
        grep -E 'panicked|assertion|ERROR|Test unit|Base64' -A2 "$logs/$target" | head -40
        return 1
    fi
}
export -f one

status=0
for target in fuzz_targets/*.rs; do basename "$target" .rs; done | grep -vx any |
    xargs -P "$(nproc)" -I '{}' bash -c 'one {}' | tee "$logs/all" || status=1
echo "count: $(grep -vc 'FAILED$' <(grep -E '^[a-z0-9_]+ +(DONE|FAILED)' "$logs/all")) passed," \
    "$(grep -cE '^[a-z0-9_]+ +FAILED$' "$logs/all") failed"
[ "$status" = 0 ] || echo "a target failed; its input lies in fuzz/artifacts" >&2
exit "$status"
