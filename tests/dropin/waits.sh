#!/bin/sh
# waits.sh <tcasim> <scenario> <waits> <first> <count> <ways>: the programs of these seeds wait as long as in a run in
# which every poll is carried out, to the nanosecond that their clocks show. No wait is one of which that was only learned.
set -eu
tcasim=$1 scenario=$2 waits=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for how in '' --every-poll; do
    # shellcheck disable=SC2086 # no option, or one
    "$tcasim" exec "$scenario" $how --out "$folder/out$how" --on node0 "$waits $*" --on node1 "$waits $* node0" >"$folder/times$how"
done
[ -s "$folder/times" ]
if grep 'late_at_most_ps: [1-9]' "$folder/out/exec.yaml"; then
    exit 1
fi
diff "$folder/times--every-poll" "$folder/times" || {
    echo 'waits end at other times than if every poll is carried out (<)' >&2
    exit 1
}
