#!/bin/sh
# killed.sh <tcasim> <scenario> <server> <client>: the server on node1 is killed, which sets the run's exit status (137);
# the client on node0 succeeds.
set -u
timeout 60 "$1" exec "$2" --on node1 "$3" --on node0 "sh -c '$4 && echo well'" >"${TMPDIR:-/tmp}/killed.$$"
status=$?
cat "${TMPDIR:-/tmp}/killed.$$"
said=$(grep -c '^well$' "${TMPDIR:-/tmp}/killed.$$")
rm -f "${TMPDIR:-/tmp}/killed.$$"
[ "$status" = 137 ] && [ "$said" = 1 ]
