#!/bin/sh
# tca_program.sh <tcasim> <pkg-config folder> <source> <scenario> <exec argument ...>: compiles the program as users do,
# with pkg-config, and runs the scenario's command in its folder, twice: it succeeds (its own checks hold) and prints
# the same. The runs' hashes are not compared, because mpirun reads the output of ranks from terminals, which the kernel
# serves in real time. 77: Open MPI is not installed.
set -eu
tcasim=$1 packages=$2 source=$3 scenario=$4
shift 4
{ command -v mpicc && command -v mpirun; } >/dev/null || {
    echo "skipped: Open MPI (openmpi-bin, libopenmpi-dev) is not installed" >&2
    exit 77
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap "exit 1" INT TERM HUP
# shellcheck disable=SC2046 # words
mpicc -O2 -Wall -Wextra -Werror "$source" -o "$folder/$(basename "$source" .c)" \
    $(PKG_CONFIG_PATH=$packages pkg-config --cflags --libs tcasim)
cd "$folder"
for run in 1 2; do
    timeout 130 "$tcasim" exec "$scenario" "$@" >"output$run"
done
cat output1
diff output1 output2
[ -s output1 ]
