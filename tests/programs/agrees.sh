#!/bin/sh
# agrees.sh <tcasim> <scenario> <operation> <bytes> <device>: perftest's typical latency on the scenario's nodes is that
# of verbs-latency there, within 5 %. 77: perftest is not installed. perftest does not post its 512 receives again, as
# verbs-latency does for each message, so it gets fewer.
set -eu
tcasim=$1
scenario=$2
operation=$3
bytes=$4
device=$5
command -v "ib_${operation}_lat" >/dev/null || {
    echo "skipped: perftest is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    cat "$scenario"
    echo "runs:"
    echo "  - {series: inside, workload: verbs-latency, device: $device, operation: $operation, node: node0, peer: node1,"
    echo "     bytes: $bytes B, iterations: 200}"
} >"$folder/inside.yaml"
"$tcasim" run "$folder/inside.yaml" --out "$folder/out" >/dev/null
depth=
[ "$operation" != send ] || depth="-r 16"
program="ib_${operation}_lat -F -n 200 -s $bytes $depth"
timeout 60 "$tcasim" exec "$scenario" --on node1 "$program" --on node0 "$program node1" >"$folder/outside"
inside=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "latency_us") column = i } NR == 2 { print $column }' \
    "$folder/out/data.csv")
outside=$(awk -v bytes="$bytes" '$1 == bytes && $2 == 200 { print $5; exit }' "$folder/outside")
echo "inside $inside us, perftest $outside us"
awk -v a="$inside" -v b="$outside" 'BEGIN { exit !(a > 0 && b > 0 && b > a * 0.95 && b < a * 1.05) }'
