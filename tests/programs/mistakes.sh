#!/bin/sh
# mistakes.sh <tcasim> <scenario> <device> <folder of sources>: each classic mistake of a verbs program is reported by a
# line that names it, in one run; the same program without the mistake runs without a message.
set -eu
tcasim=$1 scenario=$2 device=$3 sources=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gcc -O1 -g -D_GNU_SOURCE -Wall -Wextra -Werror -o "$folder/mistake" "$sources/mistake.c" "$sources/pair.c" \
    -L"$(dirname "$tcasim")/lib" -l:libibverbs.so.1

failed=0
# Not every machine has breakpoints for its users, or ones that work, which a run says once.
notice='the machine does not let this user have breakpoints'
# run <name> wrong|right [option ...]: puts the simulator's messages into $folder/said, without that notice
run() {
    name=$1 kind=$2
    shift 2
    status=0
    timeout 60 "$tcasim" exec "$scenario" "$@" --on node0 "$folder/mistake $device $name $kind" \
        --on node1 "$folder/mistake $device $name $kind node0" >"$folder/all" 2>&1 || status=$?
    grep -v "$notice" "$folder/all" >"$folder/said" || true
}
fail() {
    echo "$1:" >&2
    cat "$folder/said" >&2
    failed=1
}
# reports <name> <status> <words> [option ...]
reports() {
    mistake=$1 wanted=$2 words=$3
    shift 3
    run "$mistake" wrong "$@"
    grep -Eq "$words" "$folder/said" || fail "$mistake is not reported by '$words'"
    [ "$status" = "$wanted" ] || fail "$mistake ends with $status instead of $wanted"
    run "$mistake" right "$@"
    [ "$status" = 0 ] && [ ! -s "$folder/said" ] || fail "$mistake without the mistake is not silent"
}
qp='qp [0-9]+ -> node0 qp [0-9]+'
reports wrong-rkey 0 "^tcasim: node1 $qp: RDMA_WRITE of 64 B to 0x[0-9a-f]+, rkey 0x[0-9a-f]+ .*REM_ACCESS_ERR: no such region; regions there: rkey 0x[0-9a-f]+ \[0x[0-9a-f]+, 8 KiB, local write, remote write, remote read\]"
reports no-receive 0 "^tcasim: node1 $qp: SEND of 64 B .*receive queue of node0 qp [0-9]+ empty \(0 posted\); RNR 4 times, gave up"
reports wrong-qp 0 'RETRY_EXC_ERR: nothing came back: node0 has no queue pair [0-9]+; queue pairs there: [0-9]+ \(RTS\)'
reports rtr-before-init 0 'ibv_modify_qp of qp [0-9]+ from RESET to RTR fails with EINVAL'
reports small-buffer 0 'node0 qp [0-9]+: receive request of 32 B .*LOC_LEN_ERR: the message is longer than the receive buffer'
reports early-dereg 0 'REM_ACCESS_ERR: no such region: it was deregistered at [0-9.]+ [nu]s'
reports wrong-cq 3 'node0 cq [0-9]+: 1 completion not polled: RECV wr_id 0x7 of qp [0-9]+'
reports unsignalled 0 'ibv_post_send on qp [0-9]+ .* fails with ENOMEM: the send queue is full \(16 requests\)'

reports two-refusals 0 'ibv_reg_mr .* fails with EINVAL: 0 B at 0x[0-9a-f]+ are not a range that a region can have'
run stuck-elsewhere right
[ "$status" = 3 ] && grep -Eq "node1 $qp \(RTS\): 0 of 4 sends outstanding, 0 of 0 receives\$" "$folder/said" ||
    fail 'a program that waits for the other one has no plain queue pair'
! grep -q 'where nothing came' "$folder/said" || fail 'a queue in which something came is said to be polled in vain'

# Mistakes that only the simulator can see. A finding gives status 1.
check="^tcasim: check: node[01]:"
reports leaked-qp 1 "$check queue pair [0-9]+ is never destroyed; made in ibv_create_qp .* called by pair_open \(pair.c:[0-9]+\)" --check
reports early-write 1 "$check qp [0-9]+: the buffer of the RDMA_WRITE request wr_id 0x1 .* was changed before the request was complete" --check
reports early-write-at-the-end 1 "$check qp [0-9]+: the buffer of the RDMA_WRITE request wr_id 0x1 .* was changed before the request was complete" --check
reports early-free 1 "$check memory of a region \(8 KiB at 0x[0-9a-f]+\) was freed while it is registered; in free .* called by early_free" --check
reports overlap 1 "$check qp [0-9]+: the receive requests wr_id 0x7 and 0x8 have memory in common" --check
reports cq-overrun 1 "$check completion queue [0-9]+ may be overrun: it has [0-9]+ entries" --check
reports early-destroy 1 "$check qp [0-9]+ is destroyed while 1 of its send requests are not known to be complete" --check
reports early-unmap 1 "$check memory of a region \(8 KiB at 0x[0-9a-f]+\) was unmapped while it is registered; in munmap .* called by early_unmap" --check
reports many-reads 1 "$check qp [0-9]+ may have 4 reads and atomics outstanding, its peer takes 1" --check
reports unmap-in-flight 1 "$check memory of a region \(8 KiB at 0x[0-9a-f]+\) was unmapped while it is registered" --check
for name in full-queue one-in-two reset-again reset-and-send many-connections; do
    run $name right --check --quiet-diagnosis
    [ "$status" = 0 ] && ! grep -q 'check:' "$folder/said" || fail "$name is blamed"
done
run early-read wrong --check
if ! grep -q "$notice" "$folder/all"; then
    reports early-read 1 "$check qp [0-9]+: the buffer of the RDMA_READ request .* was accessed before the request was complete; in early_read \(mistake.c:[0-9]+\)" --check
fi
run error-post wrong --check
grep -Eq "$check qp [0-9]+ is in the error state: what is posted to it \(wr_id 0x2\) is flushed" "$folder/said" ||
    fail "a post to a queue pair in the error state is not reported"

run early-write wrong --check --junit "$folder/junit.xml"
grep -q 'name="checks"' "$folder/junit.xml" && grep -q 'was changed before the request was complete' "$folder/junit.xml" ||
    fail "a finding is no failure in the JUnit XML"

run wrong-rkey wrong --quiet-diagnosis
[ ! -s "$folder/said" ] || fail "--quiet-diagnosis says something"
exit "$failed"
