#!/bin/sh
# tca_mpi.sh <tcasim> <program> <scenario> <bytes> ...: the program for HA-PACS/TCA, started by mpirun on both nodes,
# measures the latency of the ping-pong inside the simulator, within 5 %, and completes all of its sizes. 77: MPI is not
# installed.
set -eu
tcasim=$1
program=$2
scenario=$3
shift 3
command -v mpirun >/dev/null && [ -x "$program" ] || {
    echo "skipped: Open MPI is not installed" >&2
    exit 77
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
timeout 100 "$tcasim" run "$scenario" --set 'nodes.*.board.fidelity=twin' --quiet --out "$results"
outside() {
    run="$program $*"
    timeout 100 "$tcasim" exec "$scenario" --set 'nodes.*.board.fidelity=twin' --on node0 \
        "mpirun -quiet -np 1 -x TCASIM_NODE=node0 $run : -np 1 -x TCASIM_NODE=node1 $run"
}
for bytes in "$@"; do
    inside=$(awk -F, -v bytes="$bytes" '$1 == "dma" && $2 == bytes { print $3 }' "$results/data.csv")
    output=$(outside -n 100 -s "$bytes")
    latency=$(printf '%s\n' "$output" | awk -v bytes="$bytes" '$1 == bytes { print $2 }')
    echo "$bytes B: inside ${inside:-nothing} us, outside ${latency:-nothing} us"
    awk -v a="${inside:-0}" -v b="${latency:-0}" 'BEGIN { exit !(a > 0 && b > a * 0.95 && b < a * 1.05) }'
done
outside -n 10 | awk '{ print } $1 == 1048576 { good = 1 } END { exit !good }'
