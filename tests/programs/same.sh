#!/bin/sh
# same.sh <tcasim> <scenario> <program> <server> <client> [<pattern>]: the server on node1 and the client on node0,
# twice, and twice more while all processors are busy: each run succeeds, prints the same, and has the same hash. The
# output has a line with the pattern. Ports of the machine are ignored. If a run differs, the first attach calls that do are
# shown. RUNS=2: not on the busy machine. 77: the program is not installed.
set -eu
tcasim=$1 scenario=$2 program=$3 server=$4 client=$5 pattern=${6:-.}
command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
busy=
# shellcheck disable=SC2086
trap '[ -z "$busy" ] || kill $busy; rm -rf "$folder"' EXIT
RUNS=${RUNS:-4}
for run in $(seq "$RUNS"); do
    if [ $run = 3 ]; then
        for _ in $(seq "$(nproc)"); do
            while :; do :; done &
            busy="$busy $!"
        done
    fi
    timeout 100 "$tcasim" exec "$scenario" --out "$folder/out" --ipc-trace "$folder/calls.$run" --on node1 "$server" --on node0 "$client" >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
    sed -E 's/127[.]77[.0-9]+:[0-9]+/an address/' "$folder/log" >"$folder/$run"
    cat "$folder/out/exec.yaml" >>"$folder/$run"
done
grep "$pattern" "$folder/1"
for run in $(seq 2 "$RUNS"); do
    diff "$folder/1" "$folder/$run" || {
        diff "$folder/calls.1" "$folder/calls.$run" | head -n 30
        exit 1
    }
done
