#!/bin/sh
# tool.sh <text> <program> [argument ...]: the program succeeds and prints the text. 77: it is not installed.
set -eu
text=$1
shift
command -v "$1" >/dev/null || {
    echo "skipped: $1 is not installed" >&2
    exit 77
}
output=$("$@")
printf '%s\n' "$output"
case $output in
*"$text"*) ;;
*)
    echo "$1 does not say '$text'" >&2
    exit 1
    ;;
esac
