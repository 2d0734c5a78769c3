#!/bin/sh
# unready.sh <tcasim> <scenario> <program>: a program that looks for ever for what its partner is never ready for is named
# after the limit of real time, however often its library tries again.
set -u
text=$(timeout 40 "$1" exec "$2" --wall-limit 2 --on node0 "$3" 2>&1)
status=$?
printf '%s\n' "$text"
[ "$status" != 124 ] && [ "$status" != 0 ] && printf '%s\n' "$text" | grep -q 'dropin_unready.* looks for something that nobody sends'
