# machine_programs.sh, to be read by a script that has set `tcasim`, `source` (the source folder) and `folder` (for what is
# compiled, and results): the programs whose runs are compared between machines. `prepare` and `run_by` belong together.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NO_COLOR=1 PYTHONHASHSEED=0
pair=$source/tests/dropin/ibsim0.yaml
workloads=$source/scenarios/workloads
openib="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --host node0,node1 --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1"
ucx="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --host node0,node1 --mca pml ucx --mca osc ucx"

needed() {
    command -v "$1" >/dev/null || {
        echo "skipped: $1 ($2) is not installed" >&2
        exit 77
    }
}

compiled() { # compiled <compiler> <source> [option ...]: once
    compiler=$1 from=$2
    shift 2
    needed "$compiler" "a compiler of MPI"
    [ -x "$folder/$compiler" ] || "$compiler" -O2 -fopenmp -o "$folder/$compiler" "$from" "$@"
}

# prepare <program>: sets what `run_by` runs: scenario, server, client (empty: the scenario has it).
prepare() {
    scenario=$pair
    unset UCX_TLS UCX_NET_DEVICES
    export UCX_NET_DEVICES=ibsim0:1 UCX_TLS=rc
    case $1 in
    perftest)
        needed ib_send_lat perftest
        server="ib_send_lat -F -n 50" client="ib_send_lat -F -n 50 node1"
        ;;
    openib)
        compiled mpicc.openmpi "$workloads/mpi_pingpong.c"
        server="" client="$openib $folder/mpicc.openmpi"
        ;;
    ucx)
        compiled mpicc.openmpi "$workloads/mpi_pingpong.c"
        server="" client="$ucx $folder/mpicc.openmpi"
        ;;
    mpich)
        compiled mpicc.mpich "$workloads/mpi_pingpong.c"
        server="" client="mpiexec.mpich -hosts node0,node1 $folder/mpicc.mpich"
        ;;
    mpi4py)
        /usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null || {
            echo "skipped: python3-mpi4py or python3-numpy is not installed" >&2
            exit 77
        }
        server="" client="$openib /usr/bin/python3 $source/tests/programs/mpi/ranks.py"
        ;;
    fi_pingpong)
        needed fi_pingpong libfabric-bin
        server="fi_pingpong -p verbs -e msg -S 64 -I 20" client="fi_pingpong -p verbs -e msg -S 64 -I 20 node1"
        ;;
    ucx_perftest)
        needed ucx_perftest ucx-utils
        server=ucx_perftest client="ucx_perftest node1 -t tag_lat -n 200 -w 20 -s 8"
        ;;
    openmp)
        server="" client="$(dirname "$tcasim")/world/world_openmp"
        ;;
    gpu)
        scenario=$source/scenarios/attached/tca/gpu-pingpong.yaml
        compiled mpicc.openmpi "$workloads/mpi_pingpong.c" # the compiler is there
        # shellcheck disable=SC2046
        [ -x "$folder/gpu_pingpong" ] || mpicc.openmpi -O2 -o "$folder/gpu_pingpong" \
            "$source/scenarios/attached/tca/gpu_pingpong.c" \
            $(PKG_CONFIG_PATH=$(dirname "$tcasim")/lib/pkgconfig pkg-config --cflags --libs tcasim)
        server="" client=""
        ;;
    esac
}

# run_by <command ...>: the command runs the program that was prepared, in at most $limit seconds. Sets `status`;
# $folder/log has what the run printed, $folder/out its results.
run_by() {
    rm -rf "$folder/out"
    set -- "$@" timeout "${limit:-200}" "$tcasim" exec "$scenario"
    if [ -z "$client" ]; then
        set -- "$@" --set 'nodes.*.board.fidelity=twin'
    elif [ -z "$server" ]; then
        set -- "$@" --on node0 "$client"
    else
        set -- "$@" --on node1 "$server" --on node0 "$client"
    fi
    status=0
    (cd "$folder" && "$@" --out "$folder/out") >"$folder/log" 2>&1 </dev/null || status=$?
}

# Prints what exec.yaml has apart from the machine, and what the programs printed.
results_show() {
    sed '/^machine:/,/^[^ ]/{/^[ m]/d}' "$folder/out/exec.yaml"
}

output_show() {
    sed -E 's/127[.]77[.0-9]+:[0-9]+/an address/' "$folder/log"
}
