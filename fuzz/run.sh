#!/usr/bin/env bash
# Runs every fuzz target for a short time; any crash fails.
#
#   fuzz/run.sh [SECONDS]            seconds per target, 10 unless given
#   FUZZ_SANITIZER=address fuzz/run.sh 60
#
# Without a nightly compiler, committed inputs and repeatable mutations are replayed on the stable one instead.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-10}
# The workspace forbids unsafe code, so a sanitizer finds little that a panic does not; without one we run twice as fast.
sanitizer=${FUZZ_SANITIZER:-none}
cargo_fuzz_version=0.13.2

echo "replaying committed inputs on the default compiler"
cargo test --quiet --no-default-features --lib

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "no nightly compiler: replay only (rustup toolchain install nightly --profile minimal)"
    exit 0
fi
if [ "$(cargo fuzz --version 2>/dev/null)" != "cargo-fuzz $cargo_fuzz_version" ]; then
    cargo install --locked cargo-fuzz --version "$cargo_fuzz_version"
fi

cargo +nightly fuzz build --sanitizer "$sanitizer"
failed=()
for target in fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    mkdir -p "corpus/$target"
    log=$(mktemp)
    # New inputs go into the first folder, which is not committed.
    if cargo +nightly fuzz run --sanitizer "$sanitizer" "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 >"$log" 2>&1; then
        printf '%-26s %s\n' "$target" "$(grep -o 'DONE.*' "$log" | head -1)"
    else
        printf '%-26s FAILED\n' "$target"
        grep -E 'panicked|assertion|SUMMARY|artifact|Base64' -A2 "$log" | head -40
        failed+=("$target")
    fi
    rm -f "$log"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}; the inputs lie in fuzz/artifacts" >&2
    exit 1
fi
