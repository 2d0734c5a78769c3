#!/bin/sh
# unready.sh <tcasim> <scenario> <program>: a program that polls or sleeps for ever for what its partner is never ready for is
# named when nothing has come for long, however often its library or its device tries again.
set -u
text=$(timeout 40 "$1" exec "$2" --wall-limit 2 --on node0 "$3" 2>&1)
status=$?
printf '%s\n' "$text"
[ "$status" != 124 ] && [ "$status" != 0 ] && printf '%s\n' "$text" | grep -q 'dropin_unready.* waits for \(a device\|an event of a device\|a descriptor\)'
