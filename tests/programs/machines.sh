#!/bin/sh
# machines.sh <tcasim> <source folder> <machines> <program ...>: runs the programs on machines that differ in what a
# program can read about them: files are replaced in a name space of the user. All runs of a program have one hash and
# print the same. machines: few, all. 77: there are no name spaces, or a program is not installed.
set -eu
tcasim=$1 source=$2 machines=$3
shift 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NO_COLOR=1 PYTHONHASHSEED=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unshare -Urm true 2>"$folder/error" || {
    echo "skipped: no name spaces for a user: $(cat "$folder/error")" >&2
    exit 77
}
pair=$source/tests/dropin/ibsim0.yaml
workloads=$source/scenarios/workloads
openib="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --host node0,node1 --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1"
ucx="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --host node0,node1 --mca pml ucx --mca osc ucx"

# --- machines -------------------------------------------------------------------------------------------------------
# Each is a script that changes the name space in which it is, and runs the rest of its arguments there.

# machine <name> <change ...>
machine() {
    {
        echo "#!/bin/sh"
        echo "set -e"
        shift
        for change in "$@"; do
            echo "$change"
        done
        echo 'exec "$@"'
    } >"$folder/machine_$name"
    chmod +x "$folder/machine_$name"
}

# file <path> <text>: replaces a file, if the machine has it.
replace() {
    made=$folder/file_$(echo "$1" | tr -c 'a-z0-9\n' _)_$name
    cat >"$made"
    echo "[ ! -e $1 ] || mount --bind $made $1"
}

# folder_empty <path>: hides what is in it, if the machine has it.
hide() {
    echo "[ ! -e $1 ] || mount -t tmpfs none $1"
}

# The processors of a machine with that frequency in MHz, model name and BogoMIPS.
cpuinfo() {
    for i in 0 1; do
        printf 'processor\t: %s\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: %s\n' $i "$2"
        printf 'cpu MHz\t\t: %s.000\nflags\t\t: %s\nbogomips\t: %s.00\n\n' "$1" \
            "$(sed -n 's/^flags[^:]*: //p' /proc/cpuinfo | head -n 1)" "$3"
    done
}

name=as_it_is && machine $name
name=slow && machine $name "$(cpuinfo 2100 'A processor' 4200 | replace /proc/cpuinfo)"
name=fast && machine $name "$(cpuinfo 2800 'A processor' 5600 | replace /proc/cpuinfo)"
name=named && machine $name "$(cpuinfo 2400 'A processor @ 2.40GHz' 4800 | replace /proc/cpuinfo)"
name=sixteen && machine $name "$(echo 0-15 | replace /sys/devices/system/cpu/online)" \
    "$(echo 0-15 | replace /sys/devices/system/cpu/possible)" "$(echo 0-15 | replace /sys/devices/system/cpu/present)"
name=nameless && machine $name "$(echo '10.1.2.3 somebody' | replace /etc/hosts)"
name=six && machine $name "$(echo '::1 localhost' | replace /etc/hosts)"
name=bare && machine $name "$(hide /sys/bus/pci/devices)" "$(hide /sys/block)" "$(hide /sys/class/block)" \
    "$(hide /sys/class/net)" "$(hide /sys/class/dmi)" "$(hide /usr/lib/x86_64-linux-gnu/hwloc)"
name=memory && machine $name "$(echo 'MemTotal: 1048576 kB' | replace /proc/meminfo)" \
    "$(echo 'hosts: dns' | replace /etc/nsswitch.conf)" "$(echo 'nameserver 192.0.2.1' | replace /etc/resolv.conf)"

# on <machine> <command ...>
on() {
    machine=$1
    shift
    case $machine in
    one) taskset -c 0 "$@" ;;
    user) unshare -U --map-user=1234 --map-group=1234 "$@" ;;
    lonely) unshare -Urn sh -c 'ip link set lo up; exec "$@"' sh "$@" ;;
    terminal) script -qec "$(printf "'%s' " "$@")" "$folder/typescript" </dev/null | tr -d '\r' ;;
    *) unshare -Urm "$folder/machine_$machine" "$@" ;;
    esac
}

case $machines in
few) set_of_machines="as_it_is slow bare" ;;
all) set_of_machines="as_it_is slow fast named one sixteen nameless six lonely bare memory user terminal" ;;
esac

# --- programs -------------------------------------------------------------------------------------------------------

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

# prepare <program>: sets scenario, and the arguments of exec in `programs`.
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

# run <machine>: prints what the programs print, and what exec.yaml has apart from the machine. On a terminal, which
# programs write to line by line, output comes in another order, and is left out.
run() {
    where=$1
    rm -rf "$folder/out"
    if [ -z "$client" ]; then
        set -- "$scenario" --set 'nodes.*.board.fidelity=twin'
    elif [ -z "$server" ]; then
        set -- "$scenario" --on node0 "$client"
    else
        set -- "$scenario" --on node1 "$server" --on node0 "$client"
    fi
    (cd "$folder" && on "$where" timeout 200 "$tcasim" exec "$@" --out "$folder/out") >"$folder/log" 2>&1 || {
        echo "$where: it failed"
        cat "$folder/log"
        return 1
    }
    sed '/^machine:/,/^[^ ]/{/^[ m]/d}' "$folder/out/exec.yaml"
    [ "$where" = terminal ] || sed -E 's/127[.]77[.0-9]+:[0-9]+/an address/' "$folder/log"
}

# All of it, or on a terminal its first part.
same() {
    lines=$(wc -l <"$folder/$([ "$where" = terminal ] && echo seen || echo first)")
    [ "$lines" -gt 5 ] && head -n "$lines" "$folder/first" | cmp -s - "$folder/seen"
}

failed=0
for program in "$@"; do
    prepare "$program"
    for where in $set_of_machines; do
        run "$where" >"$folder/seen" || failed=1
        [ "$where" != as_it_is ] || cp "$folder/seen" "$folder/first"
        same || {
            echo "$program: $where differs from the machine as it is:"
            diff "$folder/first" "$folder/seen" | head -n 20
            failed=1
        }
    done
    echo "$program: $(sed -n 's/^hash: //p' "$folder/first")"
done
exit $failed
