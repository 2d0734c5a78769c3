#!/bin/sh
# connects.sh <tcasim> <scenario> <text> <server> <client>: the server on node1 and the client on node0 succeed, twice,
# and print the same, including the text. 77: a program is not installed.
set -eu
tcasim=$1 scenario=$2 text=$3 server=$4 client=$5
for program in "${server%% *}" "${client%% *}"; do
    command -v "$program" >/dev/null || {
        echo "skipped: $program is not installed" >&2
        exit 77
    }
done
said() {
    timeout 60 "$tcasim" exec "$scenario" --on node1 "$server" --on node0 "$client" 2>&1
}
first=$(said)
second=$(said)
printf '%s\n' "$first"
case $first in
*"$text"*) ;;
*)
    echo "nobody says '$text'" >&2
    exit 1
    ;;
esac
[ "$(printf '%s\n' "$first" | sort)" = "$(printf '%s\n' "$second" | sort)" ] || {
    printf 'the second run differs:\n%s\n' "$second" >&2
    exit 1
}
