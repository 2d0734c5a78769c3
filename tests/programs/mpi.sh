#!/bin/sh
# mpi.sh <tcasim> <scenario> <source> <hosts or alone> <from us> <to us> <mpirun argument ...>: compiles the program and runs
# it twice with a rank on each host, or without mpirun. It ends well, has found nothing wrong and prints the same twice,
# 8 B within the range where it prints times. 77: there is no Open MPI.
set -eu
tcasim=$1 scenario=$2 source=$3 hosts=$4 from=$5 to=$6
shift 6
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export UCX_NET_DEVICES=ibsim0:1 UCX_TLS=rc
{ command -v mpicc && command -v mpirun; } >/dev/null || {
    echo "skipped: Open MPI (openmpi-bin, libopenmpi-dev) is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc -O2 -o "$folder/program" "$source"
program="mpirun --mca plm_rsh_agent tcasim-rsh --host $hosts $* $folder/program"
[ "$hosts" != alone ] || program=$folder/program
for run in 1 2; do
    timeout 120 "$tcasim" exec "$scenario" --on node0 "$program" >"$folder/output$run"
done
cat "$folder/output1"
diff "$folder/output1" "$folder/output2"
grep -Eq '(^|[^0-9])0 wrong$' "$folder/output1"
awk -v from="$from" -v to="$to" '$2 == "B" && $1 == 8 && ($3 < from || $3 > to) { exit 1 }' "$folder/output1"
