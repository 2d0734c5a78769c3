#!/bin/sh
# job.sh [tcasim]: a regression test of a verbs program without hardware, for any CI: builds the program, runs it on two
# simulated nodes, and holds what it prints against what it printed when it was right (expected.txt).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tcasim=$(readlink -f "${1:-$here/../../../tcasim}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tcasim" exec --help >/dev/null # installs what is missing, gcc and libibverbs among it, and builds
gcc -O2 -Wall "$here/verbs_check.c" -o "$work/verbs_check" -libverbs
cd "$work"
"$tcasim" exec "$here/pair.yaml" >printed.txt
diff "$here/expected.txt" printed.txt
