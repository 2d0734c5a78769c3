#!/bin/sh
# unready.sh <tcasim> <scenario> <program> [plain | hinted [<option> ...]]: a program that polls or sleeps forever, because its peer is never ready,
# is reported after a long time without progress, however often its library or its device retransmits. The lines about
# its queues say that no receive request is there; with "plain" they do not.
set -u
tcasim=$1 scenario=$2 program=$3 hint=${4-hinted}
shift 3
[ $# = 0 ] || shift
text=$(timeout 40 "$tcasim" exec "$scenario" "$@" --wall-limit 2 --on node0 "$program" 2>&1)
status=$?
printf '%s\n' "$text"
hints=$(printf '%s\n' "$text" | grep -c 'no receive request is there')
[ "$status" != 124 ] && [ "$status" != 0 ] &&
    printf '%s\n' "$text" | grep -q 'dropin_unready.* waits for \(a device\|an event of a device\|a descriptor\)' &&
    [ "$hints" = "$([ "$hint" = plain ] && echo 0 || echo 1)" ]
