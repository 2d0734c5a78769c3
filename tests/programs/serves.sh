#!/bin/sh
# serves.sh <seconds> <server...>: ends a server that runs for ever after this number of seconds of simulated time.
seconds=$1
shift
"$@" &
sleep "$seconds"
kill $!
