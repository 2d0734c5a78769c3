#!/bin/sh
# real_time.sh <tcasim> <folder of the sources> <programs> [<how> ...]: runs the programs as they are, and then each of
# these ways, in which real time passes differently; prints, exec.yaml and the hash in it must be the same, and no run may
# say that another one may differ. Without <how>: all ways.
#   tenth, tenfold   with all constants of verbs-shim/attach/real_time.h divided or multiplied by ten
#   busy, nice       while all processors are busy, the second at the lowest priority
#   strace, gdb      under these tracers, where they are installed
#   debug            compiled without optimisation: only `compiled`, as an MPI program of a debug build makes other calls
# 77: a program is not installed.
set -eu
tcasim=$1 source=$2 programs=$3
shift 3
[ $# -gt 0 ] || set -- tenth tenfold busy nice strace gdb debug
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export SHELL=/bin/sh # gdb's, which would else add a variable to the environment
folder=$(mktemp -d)
busy=
# shellcheck disable=SC2086
trap '[ -z "$busy" ] || kill $busy; rm -rf "$folder"' EXIT

needs() {
    for program in "$@"; do
        command -v "$program" >/dev/null || {
            echo "skipped: $program is not installed" >&2
            exit 77
        }
    done
}

# The command lines on node0 and node1, and what is compiled to $folder/program. An empty line: no program there.
device=ibsim0 first='' second='' compile=''
case $programs in
perftest-ibsim0 | perftest-tca0)
    device=${programs#perftest-}
    needs ib_send_lat
    first='ib_send_lat -F -n 100' second='ib_send_lat -F -n 100 node0'
    ;;
loop-without-calls)
    needs ib_write_lat
    first='ib_write_lat -F -n 100' second='ib_write_lat -F -n 100 node0'
    ;;
events)
    needs ibv_rc_pingpong
    first='ibv_rc_pingpong -e -n 50' second='ibv_rc_pingpong -e -n 50 node0'
    ;;
threads)
    needs fio
    first='fio --name=receiver --ioengine=rdma --port=12345 --bs=64k --size=1m --iodepth=16 --rw=read --thread=1'
    second='fio --name=sender --ioengine=rdma --hostname=node0 --port=12345 --verb=write --bs=64k --size=1m --iodepth=4 --rw=write --thread=1'
    ;;
processes)
    needs ib_send_lat sort
    first="sh -c 'ib_send_lat -F -n 20 | sort; echo over'"
    second="sh -c '(sleep 1; echo slept) & ib_send_lat -F -n 20 node0 | cat; wait; kill -9 \$\$'"
    ;;
mpi)
    needs mpirun.openmpi mpicc.openmpi
    compile="mpicc.openmpi -o $folder/program $source/scenarios/workloads/mpi_pingpong.c"
    first="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --host node0,node1 $folder/program"
    ;;
compiled)
    needs cc
    compile="cc -w -D_GNU_SOURCE -o $folder/program $source/tests/programs/mistakes/mistake.c $source/tests/programs/mistakes/pair.c -libverbs"
    first="$folder/program ibsim0 early-write right" second="$folder/program ibsim0 early-write right node0"
    ;;
*)
    echo "no such programs: $programs" >&2
    exit 1
    ;;
esac

# run <name> [<prefix> ...]: what the run printed and wrote goes to $folder/<name>.
run() {
    name=$1
    shift
    # Two per cent of a processor (nice) are no hang: a daemon of MPI then takes a minute to end.
    set -- "$@" "$tcasim" exec "$source/tests/dropin/$device.yaml" --wall-limit 900 --out "$folder/out" --on node0 "$first"
    [ -z "$second" ] || set -- "$@" --on node1 "$second"
    rm -rf "$folder/out"
    timeout 1500 "$@" </dev/null >"$folder/log" 2>"$folder/errors" || [ "$programs" = processes ] || {
        cat "$folder/log" "$folder/errors" >&2
        echo "$name: the run has failed" >&2
        exit 1
    }
    # Not what the run was made of: a debug build has another size.
    awk '/^[a-z_]+:/ { skip = /^machine:/ } !skip' "$folder/out/exec.yaml" |
        sed -E 's/127[.]77[.0-9]+(:[0-9]+)?/an address/; s/process [0-9]+/process/' >"$folder/$name"
    grep -q '^hash: ' "$folder/$name" || {
        cat "$folder/errors" >&2
        exit 1
    }
    if grep -i 'another run may differ' "$folder/errors" "$folder/$name" >&2; then
        echo "$name: real time has decided something" >&2
        exit 1
    fi
    [ "$name" = usual ] || cmp "$folder/usual" "$folder/$name" || {
        diff "$folder/usual" "$folder/$name" >&2 || :
        exit 1
    }
    echo "$programs, $name: $(grep '^hash: ' "$folder/$name")"
}

busy_begin() {
    for _ in $(seq "$(nproc)"); do
        while :; do :; done &
        busy="$busy $!"
    done
}
busy_end() {
    # shellcheck disable=SC2086
    kill $busy
    # shellcheck disable=SC2086
    wait $busy 2>/dev/null || :
    busy=
}

# shellcheck disable=SC2086
[ -z "$compile" ] || $compile -O2
run usual
for how in "$@"; do
    case $how in
    tenth) run tenth env TCASIM_REAL_TIME_PERCENT=10 ;;
    tenfold) run tenfold env TCASIM_REAL_TIME_PERCENT=1000 ;;
    busy)
        busy_begin
        run busy
        busy_end
        ;;
    nice)
        busy_begin
        run nice nice -n 19
        busy_end
        ;;
    strace) ! command -v strace >/dev/null || run strace strace -f -o /dev/null ;;
    gdb)
        ! command -v gdb >/dev/null ||
            run gdb gdb -batch -nx -ex 'unset environment LINES' -ex 'unset environment COLUMNS' \
                -ex 'handle SIGSEGV nostop noprint pass' -ex run --args
        ;;
    debug)
        # shellcheck disable=SC2086
        [ "$programs" != compiled ] || { $compile -O0 -g && run debug; }
        ;;
    *)
        echo "no such way: $how" >&2
        exit 1
        ;;
    esac
done
