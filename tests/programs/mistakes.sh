#!/bin/sh
# mistakes.sh <tcasim> <scenario> <device> <folder of sources>: each classic mistake of a verbs program is told by a line that
# names it, in one run; the same program without the mistake runs in silence.
set -eu
tcasim=$1 scenario=$2 device=$3 sources=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gcc -O1 -g -D_GNU_SOURCE -Wall -Wextra -Werror -o "$folder/mistake" "$sources/mistake.c" "$sources/pair.c" \
    -L"$(dirname "$tcasim")/lib" -l:libibverbs.so.1

failed=0
# run <name> wrong|right [option ...]: what the simulator says, in $folder/said
run() {
    name=$1 kind=$2
    shift 2
    status=0
    timeout 60 "$tcasim" exec "$scenario" "$@" --on node0 "$folder/mistake $device $name $kind" \
        --on node1 "$folder/mistake $device $name $kind node0" >"$folder/said" 2>&1 || status=$?
}
fail() {
    echo "$1:" >&2
    cat "$folder/said" >&2
    failed=1
}
# told <name> <status> <words> [option ...]
told() {
    mistake=$1 wanted=$2 words=$3
    shift 3
    run "$mistake" wrong "$@"
    grep -Eq "$words" "$folder/said" || fail "$mistake is not told by '$words'"
    [ "$status" = "$wanted" ] || fail "$mistake ends with $status instead of $wanted"
    run "$mistake" right "$@"
    [ "$status" = 0 ] && [ ! -s "$folder/said" ] || fail "$mistake without the mistake is not silent"
}
qp='qp [0-9]+ -> node0 qp [0-9]+'
told wrong-rkey 0 "^tcasim: node1 $qp: RDMA_WRITE of 64 B to 0x[0-9a-f]+, rkey 0x[0-9a-f]+ .*REM_ACCESS_ERR: no such region; regions there: rkey 0x[0-9a-f]+ \[0x[0-9a-f]+, 8 KiB, local write, remote write, remote read\]"
told no-receive 0 "^tcasim: node1 $qp: SEND of 64 B .*receive queue of node0 qp [0-9]+ empty \(0 posted\); RNR 4 times, gave up"
told wrong-qp 0 'RETRY_EXC_ERR: nothing came back: node0 has no queue pair [0-9]+; queue pairs there: [0-9]+ \(RTS\)'
told rtr-before-init 0 'ibv_modify_qp of qp [0-9]+ from RESET to RTR fails with EINVAL'
told small-buffer 0 'node0 qp [0-9]+: receive request of 32 B .*LOC_LEN_ERR: the message is longer than the receive buffer'
told early-dereg 0 'REM_ACCESS_ERR: no such region: it was deregistered at [0-9.]+ [nu]s'
told wrong-cq 3 'node0 cq [0-9]+: 1 completion not polled: RECV wr_id 0x7 of qp [0-9]+'
told unsignalled 0 'ibv_post_send on qp [0-9]+ .* fails with ENOMEM: the send queue is full \(16 requests\)'

run wrong-rkey wrong --quiet-diagnosis
[ ! -s "$folder/said" ] || fail "--quiet-diagnosis says something"
exit "$failed"
