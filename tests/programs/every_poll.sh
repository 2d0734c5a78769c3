#!/bin/sh
# every_poll.sh <tcasim> <source folder> <program ...>: the programs print the same times as in a run in which every poll
# is carried out. 77: a program is not installed.
set -eu
tcasim=$1 source=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NO_COLOR=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ibsim0=$source/tests/dropin/ibsim0.yaml
tca0=$source/tests/dropin/tca0.yaml
openmpi="mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --host node0,node1"
openib="$openmpi --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1"

needed() {
    command -v "$1" >/dev/null || {
        echo "skipped: $1 is not installed" >&2
        exit 77
    }
}

compiled() { # compiled <compiler> <source>: the program, in $made
    needed "$1"
    made=$folder/$(basename "$2" .c).$1
    [ -x "$made" ] || "$1" -O2 -fopenmp -o "$made" "$2"
}

# both <scenario> <arguments of exec ...>
both() {
    scenario=$1
    shift
    "$tcasim" exec "$scenario" "$@" >"$folder/fast"
    "$tcasim" exec "$scenario" --every-poll "$@" >"$folder/every"
    [ -s "$folder/fast" ]
    diff "$folder/every" "$folder/fast" || {
        echo "$program ends at other times than if every poll is carried out (<)" >&2
        exit 1
    }
}

pair() { # pair <scenario> <program>: a server on node0, its client on node1
    needed "${2%% *}"
    both "$1" --on node0 "$2" --on node1 "$2 node0"
}

for program in "$@"; do
    unset UCX_NET_DEVICES UCX_TLS
    case $program in
    pingpong)
        for test in 'ibv_rc_pingpong -n 50' 'ibv_rc_pingpong -n 50 -e' 'ibv_uc_pingpong -n 50' 'ibv_srq_pingpong -n 50'; do
            pair "$ibsim0" "$test"
        done
        ;;
    perftest)
        for test in 'ib_send_lat -F -n 100' 'ib_send_bw -F -n 200' 'ib_write_lat -c UC -F -n 50' 'ib_send_lat -c UD -F -n 50'; do
            pair "$ibsim0" "$test"
        done
        ;;
    perftest_tca0)
        for test in 'ib_send_lat -F -n 50' 'ib_send_bw -F -n 100' 'ib_write_lat -F -n 30' 'ib_read_lat -F -n 30 -s 65536' \
            'ib_send_lat -c UD -F -n 30'; do
            pair "$tca0" "$test"
        done
        ;;
    pingpong_tca0)
        for test in 'ibv_rc_pingpong -n 50' 'ibv_rc_pingpong -n 50 -e' 'ibv_srq_pingpong -n 50' 'ibv_ud_pingpong -n 50'; do
            pair "$tca0" "$test"
        done
        ;;
    rsockets) # the server polls from its start on: the client starts with it
        needed rstream
        both "$ibsim0" --together --on node0 'rstream -I 20 -C 20' \
            --on node1 "sh -c 'sleep 0.0003; exec rstream -s node0 -I 20 -C 20'"
        ;;
    fio) # in the reference minutes: it measures how fast its clocks are
        needed fio
        both "$ibsim0" --together --wall-limit 1000 \
            --on node0 'fio --name=receiver --ioengine=rdma --port=12345 --bs=64k --size=1m --iodepth=16 --rw=read --thread=1' \
            --on node1 'fio --name=sender --ioengine=rdma --hostname=node0 --port=12345 --verb=write --bs=64k --size=1m --iodepth=4 --rw=write --thread=1'
        ;;
    openib)
        compiled mpicc.openmpi "$source/scenarios/workloads/mpi_pingpong.c"
        both "$ibsim0" --on node0 "$openib $made"
        ;;
    ucx)
        export UCX_NET_DEVICES=ibsim0:1 UCX_TLS=rc
        compiled mpicc.openmpi "$source/scenarios/workloads/mpi_pingpong.c"
        both "$ibsim0" --on node0 "$openmpi --mca pml ucx --mca osc ucx $made"
        ;;
    mpich)
        compiled mpicc.mpich "$source/scenarios/workloads/mpi_pingpong.c"
        both "$ibsim0" --on node0 "mpiexec.mpich -hosts node0,node1 $made"
        ;;
    *)
        echo "every_poll.sh: unknown program $program" >&2
        exit 2
        ;;
    esac
done
