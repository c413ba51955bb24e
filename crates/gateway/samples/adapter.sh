#!/bin/sh
# A gateway adapter in shell: counts, and says when it does not know. See docs/gateway-programs.md.
n=0
while sleep 0.1; do
    n=$((n + 1))
    echo "{\"name\":\"Count\",\"value\":$n}" || exit
    if [ $((n % 10)) = 0 ]; then
        echo '{"name":"State","status":"uncertain","value":"unknown"}'
    else
        echo '{"name":"State","value":"running"}'
    fi
done
