#!/bin/sh
# mpi_mistakes.sh <tcasim> <scenario> <device> <source>: MPI programs on device memory whose ranks die, or whose GPU has
# too small a BAR: all end with MPI's status, and a message names the dead rank or the refused call. 77: no Open MPI.
set -eu
tcasim=$1 scenario=$2 device=$3 source=$4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
command -v mpicc.openmpi >/dev/null || {
    echo "skipped: mpicc.openmpi (libopenmpi-dev) is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck disable=SC2046
mpicc.openmpi -O2 -Wall -Wextra -Werror -o "$folder/program" "$source" \
    $(PKG_CONFIG_PATH=$(dirname "$tcasim")/lib/pkgconfig pkg-config --cflags --libs tcasim)

# ends <status> <words of the output> <argument> [option ...]
ends() {
    wanted=$1 words=$2 argument=$3
    shift 3
    status=0
    timeout 60 "$tcasim" exec "$scenario" "$@" --gpu-mpi --on node0 "mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --mca pml ob1 \
        --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_if_include $device \
        --mca btl_openib_warn_no_device_params_found 0 --host node0,node1,node2 $folder/program $argument" \
        >"$folder/output" 2>&1 || status=$?
    if [ "$status" != "$wanted" ] || ! grep -q "$words" "$folder/output"; then
        echo "$argument: status $status instead of $wanted, or no \"$words\":" >&2
        cat "$folder/output" >&2
        exit 1
    fi
}
ends 7 'Exit code: *7' exit
ends 139 'killed by signal 11 (SIGSEGV)' segv
ends 134 'killed by signal 6 (SIGABRT)' send
ends 134 'killed by signal 6 (SIGABRT)' receive
small='--set nodes.0.gpus.0.bar=4 MiB'
TCASIM_MPI_GPU=direct ends 139 "not registered (ENOMEM): the GPU's BAR has no room" large "${small%% *}" "${small#* }"
ends 0 'rank 1 is over' large "${small%% *}" "${small#* }"
