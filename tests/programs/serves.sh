#!/bin/sh
# serves.sh <seconds> <server...>: a server that serves for ever is ended after so many seconds of simulated time.
seconds=$1
shift
"$@" &
sleep "$seconds"
kill $!
