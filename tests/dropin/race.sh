#!/bin/sh
# race.sh <tcasim> <scenario> <race> <wrong claim> <right claim>: the wrong program succeeds without seeds; some of fifty
# seeds find its mistake, and the printed command finds it again. The corrected program passes all of them.
set -eu
tcasim=$1 scenario=$2 race=$3 wrong=$4 right=$5
"$tcasim" exec "$scenario" --on node0 "$race $wrong"
"$tcasim" exec "$scenario" --on node0 "$race $right"
status=0
found=$("$tcasim" exec "$scenario" --seeds 1..50 --on node0 "$race $wrong") || status=$?
printf '%s\n' "$found"
[ $status = 1 ]
command=$(printf '%s\n' "$found" | grep -m 1 -e '--adversarial')
status=0
sh -c "$command" || status=$?
[ $status = 1 ]
passed=$("$tcasim" exec "$scenario" --seeds 1..50 --on node0 "$race $right")
printf '%s\n' "$passed"
[ "$passed" = "50 seeds, 0 failed" ]
