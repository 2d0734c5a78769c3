#!/bin/sh
# job.sh [tcasim [reports]]: a regression test of a verbs program without hardware, for any CI. It builds the program,
# runs it on two simulated nodes, and compares its output and counters with the expectations in pair.yaml. It also
# checks for mistakes that no device can see, and runs the program under twenty adversaries. reports: a folder for JUnit
# XML, one file for each run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tcasim=$(readlink -f "${1:-$here/../../../tcasim}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "${2:-$work/reports}"
reports=$(cd "${2:-$work/reports}" && pwd)
"$tcasim" exec --help >/dev/null # installs missing packages, such as gcc and libibverbs, and builds
gcc -O2 -Wall "$here/verbs_check.c" -o "$work/verbs_check" -libverbs
cd "$work"

# One run: its name, and the arguments of `tcasim exec`. The worst status becomes that of the job.
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
