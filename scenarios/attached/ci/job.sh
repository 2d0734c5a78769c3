#!/bin/sh
# job.sh [tcasim [reports]]: a regression test of a verbs program without hardware, for any CI: builds the program, runs
# it on two simulated nodes, and holds what it prints and what the run counted against the expectations in pair.yaml.
# reports: a folder for JUnit XML, a file for each run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tcasim=$(readlink -f "${1:-$here/../../../tcasim}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "${2:-$work/reports}"
reports=$(cd "${2:-$work/reports}" && pwd)
"$tcasim" exec --help >/dev/null # installs what is missing, gcc and libibverbs among it, and builds
gcc -O2 -Wall "$here/verbs_check.c" -o "$work/verbs_check" -libverbs
cd "$work"

# One run of the programs: its name, and further arguments of `tcasim exec`. The worst status is the job's.
worst=0
run() {
    name=$1
    shift
    status=0
    "$tcasim" exec "$here/pair.yaml" --junit "$reports/$name.xml" "$@" || status=$?
    [ "$status" -le "$worst" ] || worst=$status
}

run expected

# Further runs of the same programs stand here, a line each: under other schedules (seeds), with checks of how they use
# verbs.

exit "$worst"
