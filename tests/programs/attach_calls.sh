#!/bin/sh
# attach_calls.sh <tcasim> <scenario> <most> <program> [argument ...]: the program as server on node1 and as its client
# on node0 make at most this number of attach calls. 77: it is not installed.
set -eu
tcasim=$1 scenario=$2 most=$3
shift 3
command -v "$1" >/dev/null || {
    echo "skipped: $1 is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
timeout 100 "$tcasim" exec "$scenario" --out "$folder" --on node1 "$*" --on node0 "$* node1" >/dev/null
calls=$(awk '$1 == "attach_calls:" { print $2 }' "$folder/exec.yaml")
echo "$calls attach calls, at most $most"
[ "$calls" -le "$most" ]
