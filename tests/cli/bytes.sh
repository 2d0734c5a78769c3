#!/bin/bash
# bytes.sh NAME COMMAND... --out FOLDER: runs a scenario, whose results must have the bytes of bytes.sha256: the same on
# every machine, and none that a change moves without a word. A trace at FOLDER/trace.csv is compared, too.
#
# A change that moves results on purpose writes the table again, to be read in its diff:
#     TCASIM_BYTES=update ctest --test-dir build/release -R '^(Bytes|Faults|Figure|Topology|Whatif)'
set -eu
name=$1 folder=${!#}
table=$(dirname "$0")/bytes.sha256
shift

rm -rf "$folder"
mkdir -p "$folder"
"$@"
cd "$folder"
found=$(sha256sum counters.csv data.csv $(ls trace.csv 2>/dev/null) | sed "s,  ,  $name/,")
cd "$OLDPWD"

if [ "${TCASIM_BYTES:-}" = update ]; then
    exec 9<"$(dirname "$0")"
    flock 9 # tests that run side by side
    lines=$(grep -v "  $name/" "$table" || true)
    printf '%s\n' "$lines" "$found" | sed '/^$/d' | LC_ALL=C sort -k 2 >"$table"
    exit
fi
if ! difference=$(diff <(grep "  $name/" "$table") <(printf '%s\n' "$found")); then
    printf '%s\n' "$difference"
    echo "FAILED: results of $name in $folder are not those of bytes.sha256 (<: expected); see the head of bytes.sh" >&2
    exit 1
fi
