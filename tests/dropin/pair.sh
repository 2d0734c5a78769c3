#!/bin/sh
# pair.sh <tcasim> <scenario> <program> [argument ...]: the program as server on node1 and as its client on node0, twice.
# Both runs succeed and give the same figures. 77: the program is not installed.
set -eu
tcasim=$1
scenario=$2
shift 2
command -v "$1" >/dev/null || {
    echo "skipped: $1 is not installed" >&2
    exit 77
}
# Addresses have random packet numbers.
figures() {
    timeout 100 "$tcasim" exec "$scenario" --on node1 "$*" --on node0 "$* node1" | grep -v address | sort
}
first=$(figures "$@")
second=$(figures "$@")
printf '%s\n' "$first"
case $first in
*iter* | *usec*) ;;
*)
    echo "no figures" >&2
    exit 1
    ;;
esac
[ "$first" = "$second" ] || {
    printf 'the second run differs:\n%s\n' "$second" >&2
    exit 1
}
