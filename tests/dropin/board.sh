#!/bin/sh
# board.sh <tcasim> <scenario> <program for the board>: while a process owns the node's board, libibverbs and libtca refuse
# other processes of the node with the reason, and these do not change the owner's figures; afterwards they can use it. 77:
# ib_send_lat is not installed.
set -eu
command -v ib_send_lat >/dev/null || {
    echo "skipped: ib_send_lat is not installed" >&2
    exit 77
}
others="sh -c 'sleep 0.2; ib_send_lat >/dev/null; echo verbs \$?; $3; echo libtca \$?; sleep 1; $3; echo later \$?'"
figures() {
    timeout 60 "$1" exec "$2" --on node1 "ib_send_lat -n 50" --on node0 "ib_send_lat -n 50 node1" --on node0 "$3" 2>&1
}
alone=$(figures "$1" "$2" true)
beside=$(figures "$1" "$2" "$others")
printf '%s\n' "$beside"
for line in 'verbs 1' 'libtca 1' 'later 0' 'tcaInit: another process of the node has the board' \
    'the board of node0 is in use by process'; do
    printf '%s\n' "$beside" | grep -q "$line" || {
        echo "lacks: $line" >&2
        exit 1
    }
done
measured() {
    printf '%s\n' "$1" | grep '^ 2 '
}
[ "$(measured "$alone")" = "$(measured "$beside")" ] || {
    printf 'alone it says\n%s\n' "$alone" >&2
    exit 1
}
