#!/bin/sh
# mpi.sh <tcasim> <scenario> <launcher> <source [argument ...]> <hosts or alone> <from us> <to us> <launcher's argument
# ...>: compiles the program and runs it twice with a rank on each host, or without a launcher. It succeeds, finds
# nothing wrong, within LIMIT seconds (120), and prints the same twice; if it prints times, 8 B is in the range.
# PLAIN=1: nothing is set for UCX.
# launcher: openmpi (mpirun), mpich (mpiexec), shmem (oshrun). 77: it is not installed.
set -eu
tcasim=$1 scenario=$2 launcher=$3 source=$4 hosts=$5 from=$6 to=$7
shift 7
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
case $scenario in
*boards.yaml | */tca0.yaml) device=tca0 ;;
*) device=ibsim0 ;;
esac
[ -n "${PLAIN-}" ] || export UCX_NET_DEVICES=$device:1 UCX_TLS="${UCX_TLS-rc}"
needed() {
    command -v "$1" >/dev/null || {
        echo "skipped: $1 ($2) is not installed" >&2
        exit 77
    }
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
arguments=
case $source in *' '*) arguments=${source#* } ;; esac
source=${source%% *}
program=$folder/program
option=
case $launcher in
openmpi)
    compiler=mpicc.openmpi
    needed "$compiler" libopenmpi-dev
    start="mpirun.openmpi --host $hosts $*"
    ;;
mpich)
    compiler=mpicc.mpich
    needed "$compiler" libmpich-dev
    start="mpiexec.mpich -hosts $hosts $*"
    ;;
shmem)
    compiler=oshcc
    needed "$compiler" libopenmpi-dev
    start="oshrun --host $hosts $*"
    ;;
esac
case $source in
*.py)
    /usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null || {
        echo "skipped: python3-mpi4py or python3-numpy is not installed" >&2
        exit 77
    }
    program="/usr/bin/python3 $source"
    ;;
*/gpu*.c) # on device memory
    # shellcheck disable=SC2046
    "$compiler" -O2 -Wall -Wextra -Werror -Wno-stringop-overflow -o "$program" "$source" \
        $(PKG_CONFIG_PATH=$(dirname "$tcasim")/lib/pkgconfig pkg-config --cflags --libs tcasim)
    option=--gpu-mpi
    ;;
*) "$compiler" -O2 -Wall -Wextra -Werror -fopenmp -o "$program" "$source" ;;
esac
program="$program $arguments"
[ "$hosts" = alone ] || program="$start $program"
for run in 1 2; do
    timeout "${LIMIT:-120}" "$tcasim" exec "$scenario" $option ${LIMIT:+--wall-limit "$LIMIT"} \
        --on node0 "$program" >"$folder/output$run"
done
cat "$folder/output1"
diff "$folder/output1" "$folder/output2"
grep -Eq '(^|[^0-9])0 wrong$' "$folder/output1"
awk -v from="$from" -v to="$to" '$2 == "B" && $1 == 8 && ($3 < from || $3 > to) { exit 1 }' "$folder/output1"
