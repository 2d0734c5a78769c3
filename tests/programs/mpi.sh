#!/bin/sh
# mpi.sh <tcasim> <scenario> <source> <hosts> <mpirun argument ...>: compiles the program and runs it with a rank on each
# host; it ends well and has found nothing wrong. 77: there is no Open MPI.
set -eu
tcasim=$1 scenario=$2 source=$3 hosts=$4
shift 4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
{ command -v mpicc && command -v mpirun; } >/dev/null || {
    echo "skipped: Open MPI (openmpi-bin, libopenmpi-dev) is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mpicc -O2 -o "$folder/program" "$source"
output=$(timeout 120 "$tcasim" exec "$scenario" --on node0 \
    "mpirun --mca plm_rsh_agent tcasim-rsh --host $hosts $* $folder/program")
printf '%s\n' "$output"
printf '%s\n' "$output" | grep -Eq '(^|[^0-9])0 wrong$'
