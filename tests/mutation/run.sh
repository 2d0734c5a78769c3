#!/bin/sh
# run.sh [options] [ROOM | MUTANT ...]: applies one small wrong change at a time and tells which ones the tests notice.
exec python3 "$(dirname "$0")/mutate.py" "$@"
