#!/bin/sh
# pyverbs.sh <tcasim> <device> <list>: rdma-core's own tests, as Debian ships them with python3-pyverbs, on the
# scenario's device: they pass, are skipped or fail as in the list. 77: they are not installed.
#
# TCASIM_PYVERBS_WRITE=1 writes the list.
set -eu
tcasim=$1
device=$2
list=$3
here=$(dirname "$(readlink -f "$0")")
shipped=/usr/share/doc/rdma-core/tests
if ! /usr/bin/python3 -c 'import pyverbs' 2>/dev/null || [ ! -e $shipped/test_qp.py.gz ]; then
    echo "skipped: python3-pyverbs is not installed, or without $shipped" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tests"
cp $shipped/*.py $shipped/*.gz "$folder/tests"
gunzip "$folder"/tests/*.gz
timeout 100 "$tcasim" exec "$here/../dropin/$device.yaml" \
    --on node0 "/usr/bin/python3 $here/pyverbs_suite.py $folder/tests $device" >"$folder/lines" 2>"$folder/log" || {
    tail -n 20 "$folder/log" >&2
    echo "the tests did not end well" >&2
    exit 1
}
[ "${TCASIM_PYVERBS_WRITE:-}" != 1 ] || cp "$folder/lines" "$list"
diff -u "$list" "$folder/lines" && tail -n +1 "$folder/lines" | cut -d ' ' -f 2 | sort | uniq -c
