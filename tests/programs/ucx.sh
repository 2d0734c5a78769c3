#!/bin/sh
# ucx.sh <tcasim> <scenario> <UCX_TLS> <from us> <to us> <ucx_perftest argument ...>: between node1 and node0; the
# average is in the range. 77: the program is not installed.
set -eu
tcasim=$1 scenario=$2
export UCX_TLS=$3 UCX_NET_DEVICES=ibsim0:1
from=$4 to=$5
shift 5
command -v ucx_perftest >/dev/null || {
    echo "skipped: ucx_perftest (ucx-utils) is not installed" >&2
    exit 77
}
output=$(timeout 60 "$tcasim" exec "$scenario" --on node1 ucx_perftest --on node0 "ucx_perftest node1 $*")
printf '%s\n' "$output"
printf '%s\n' "$output" | awk -v from="$from" -v to="$to" '/^Final/ { good = $4 >= from && $4 <= to } END { exit !good }'
