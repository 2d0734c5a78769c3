#!/bin/sh
# job.sh [tcasim [reports]]: a regression test of a verbs program without hardware, for any CI: builds the program, runs
# it on two simulated nodes, and holds what it prints and what the run counted against the expectations in pair.yaml;
# looks for mistakes that no device can see; and runs it under twenty adversaries.
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

# One run: its name, and what `tcasim exec` is given. The worst status is the job's.
worst=0
run() {
    name=$1 scenario=$2
    shift 2
    status=0
    "$tcasim" exec "$here/$scenario" --junit "$reports/$name.xml" "$@" || status=$?
    [ "$status" -le "$worst" ] || worst=$status
}

run expected pair.yaml
run checks pair.yaml --check
run seeds seeds.yaml --seeds 1..20

exit "$worst"
