#!/bin/sh
# acp.sh <tcasim> <scenario> <device> <what>: programs on ACP, as users build and start them.
#   random    three and eight ranks (as many as there are nodes), every byte checked, the same in each of two runs
#   ten       the same ten times, including the printed times
#   mistakes  ranks that die, abort, or never call the library: acprun's status, and its messages
#   agrees    puts and gets attached and inside the simulator, within 5 %
set -eu
tcasim=$1 scenario=$2 device=$3 what=$4
source=$(dirname "$(readlink -f "$0")")/acp
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PKG_CONFIG_PATH="$(dirname "$tcasim")/lib/pkgconfig"

compile() {
    name=$1
    shift
    eval "cc -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -DTCASIM_ATTACHED -o '$folder/$name' '$source/$name.c' $* $(pkg-config --cflags --libs acp)"
}
hosts=node0,node1,node2,node3

same() { # same <times> <ranks>
    for i in $(seq "$1"); do
        timeout 100 "$tcasim" exec "$scenario" --on node0 "acprun -n $2 -dev $device --hosts $hosts $folder/random 2" \
            >"$folder/output" 2>&1 || {
            cat "$folder/output" >&2
            exit 1
        }
        sort "$folder/output" >"$folder/$i"
        cmp "$folder/1" "$folder/$i" || {
            diff "$folder/1" "$folder/$i" >&2
            exit 1
        }
    done
    grep -q "rank $(($2 - 1)), seed 2: 0 wrong" "$folder/1"
}

# ends <status> <words of the output> <argument>
ends() {
    status=0
    timeout 60 "$tcasim" exec "$scenario" --on node0 "acprun -n 3 -dev $device --hosts $hosts $folder/mistakes $3" \
        >"$folder/output" 2>&1 || status=$?
    if [ "$status" != "$1" ] || { [ -n "$2" ] && ! grep -q "$2" "$folder/output"; }; then
        echo "$3: status $status instead of $1, or no \"$2\":" >&2
        cat "$folder/output" >&2
        exit 1
    fi
}

case $what in
random)
    compile random "'$source/../../acp/walk.c'"
    same 2 3
    [ "$device" = tca0 ] || same 2 8
    ;;
ten)
    compile random "'$source/../../acp/walk.c'"
    same 10 3
    ;;
mistakes)
    compile mistakes
    ends 7 'acprun: rank 1 on node1 ended with 7' exit
    ends 139 'killed by signal 11' segv
    ends 1 'acp: rank 1: rank 1 has had enough' abort
    ends 1 'acprun: rank 1 on node1 has ended without acp_finalize' quiet
    ends 1 'acprun: rank 1 on node1 has ended without acp_finalize' sync
    ends 1 'a rank has ended that the others wait for' early
    ends 3 'the programs got stuck' apart
    ends 0 '' never
    ends 0 'the copy is complete' null
    ends 0 'the copy is complete' well
    ;;
agrees)
    "$tcasim" exec "$scenario" --on node0 "acprun -n 2 -dev $device --hosts node0,node1 acp_put_get put 1048576" >"$folder/put"
    "$tcasim" exec "$scenario" --on node0 "acprun -n 2 -dev $device --hosts node0,node1 acp_put_get get 1048576" >"$folder/get"
    sed '/^programs:/,$d' "$scenario" >"$folder/inside.yaml"
    cat >>"$folder/inside.yaml" <<-END
	runs:
	  - {series: put, workload: acp-latency, device: $device, operation: put, node: node0, peer: node1, iterations: 20, bytes: [8 B, 4 KiB, 1 MiB]}
	  - {series: get, workload: acp-latency, device: $device, operation: get, node: node0, peer: node1, iterations: 20, bytes: [8 B, 4 KiB, 1 MiB]}
	END
    "$tcasim" run --quiet "$folder/inside.yaml" --out "$folder/inside"
    awk -F, -v device="$device" '
        FILENAME ~ /put$/ { attached["put", $1] = $3; next }
        FILENAME ~ /get$/ { attached["get", $1] = $3; next }
        FNR > 1 {
            ratio = attached[$1, $2] / $3
            printf "%s on %s of %d B: %.3f us attached, %.3f us inside\n", $1, device, $2, attached[$1, $2], $3
            if (ratio < 0.95 || ratio > 1.05) wrong = 1
            rows++
        }
        END { exit wrong || rows != 6 }' "$folder/put" "$folder/get" "$folder/inside/data.csv"
    ;;
esac
