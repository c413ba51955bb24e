# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Shared by the trials: counted checks, and retries.

passed=0
failed=0

# check NAME COMMAND…: one check. The output of the command is shown if it fails.
check() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: $*"
        echo "$output" | sed 's/^/        /' | tail -n 40
    fi
}

left_out() { echo "skipped $1: $2"; }

# retry SECONDS COMMAND…: repeats the command until it succeeds or the time is over.
retry() {
    rounds=$(($1 * 5))
    shift
    while ! output=$("$@" 2>&1); do
        rounds=$((rounds - 1))
        if [ "$rounds" -le 0 ]; then
            echo "$output"
            return 1
        fi
        sleep 0.2
    done
    echo "$output"
}

is_owned() { [ "$(stat -c %U:%G:%a "$1")" = "$2" ] || { stat "$1"; return 1; }; }

is_missing() { [ ! -e "$1" ] || { ls -ld "$1"; return 1; }; }
