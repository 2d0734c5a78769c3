#!/bin/sh
# adversarial.sh <tcasim> <scenario> <program> <server> <client> [A..B]: the server on node1 and the client on node0
# succeed with every seed. One seed twice gives the same hash of the run, another seed gives another hash, and runs
# without a seed all have the same hash. MPI: <server> is empty, PROGRAM in <client> is compiled from $SOURCE by
# <program>. 77: program not installed.
set -eu
tcasim=$1 scenario=$2 program=$3 server=$4 client=$5 seeds=${6:-1..10}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ -z "${SOURCE:-}" ] || {
    "$program" -O2 -o "$folder/program" "$SOURCE"
    client=$(printf '%s' "$client" | sed "s|PROGRAM|$folder/program|")
}
run() {
    if [ -n "$server" ]; then
        "$tcasim" exec "$scenario" "$@" --on node1 "$server" --on node0 "$client"
    else
        "$tcasim" exec "$scenario" "$@" --on node0 "$client"
    fi
}
hash() {
    out=$folder/$1
    shift
    run --out "$out" "$@" >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
    grep '^hash' "$out/exec.yaml"
}
run --seeds "$seeds"
first=$(hash a --adversarial 3)
again=$(hash b --adversarial 3)
other=$(hash c --adversarial 4)
none=$(hash d)
[ "$first" = "$again" ] && [ "$first" != "$other" ] && [ "$first" != "$none" ] && [ "$none" = "$(hash e)" ]
grep -q '^adversarial: 3$' "$folder/a/exec.yaml"
cmp "$folder/a/exec.yaml" "$folder/b/exec.yaml"
