#!/bin/sh
# explain.sh <tcasim> <scenario> <device>: --explain splits operations of perftest, UCX and (each of) an MPI ping-pong, and the
# pieces add up to their times (breakdown.csv); the same run without it takes as long. 77: a program is not installed.
set -eu
tcasim=$1 scenario=$2 device=$3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in ib_send_lat ucx_perftest mpicc.openmpi; do
    command -v $program >/dev/null || {
        echo "skipped: $program is not installed" >&2
        exit 77
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# adds_up <folder>: the pieces of each series follow one another from 0 on.
adds_up() {
    awk -F'","|",|,' 'NR > 1 { n = split($0, f, ","); begin = f[n - 2]; end = f[n - 1]; piece = f[n]
            series = $0; match(series, /",[0-9]+,/); series = substr(series, 1, RSTART + RLENGTH)
            if (begin != last[series] + 0 || end - begin != piece) { print "not in a row: " $0; bad = 1 }
            last[series] = end; rows++ }
        END { if (rows < 5) { print rows " pieces"; bad = 1 } exit bad }' "$1/breakdown.csv"
}
# opens <kind> <printed text> <option ...>: --explain of that kind
opens() {
    kind=$1 words=$2
    shift 2
    rm -rf "$folder/out"
    timeout 120 "$tcasim" exec "$scenario" --explain "$kind" --timeline "$folder/t.json" --out "$folder/out" \
        --json "$folder/all.json" "$@" \
        >"$folder/said" 2>&1 || {
        cat "$folder/said" >&2
        exit 1
    }
    grep -Eq "$words" "$folder/said" || {
        echo "$kind: no '$words':" >&2
        cat "$folder/said" >&2
        exit 1
    }
    adds_up "$folder/out"
    python3 - "$folder" <<'PYTHON'
import csv, json, sys
folder = sys.argv[1]
with open(f'{folder}/all.json') as file, open(f'{folder}/out/breakdown.csv') as rows, \
        open(f'{folder}/out/exec.yaml') as numbers:
    shown, (head, *rows), text = json.load(file), csv.reader(rows), numbers.read()
assert shown['breakdown']['columns'] == head and len(shown['breakdown']['rows']) == len(rows), shown['breakdown']
assert f"hash: {shown['exec']['hash']}\n" in text and f"simulated_ps: {shown['exec']['simulated_ps']}\n" in text, text
assert all(program['status'] == 0 for program in shown['exec']['programs']), shown['exec']
PYTHON
    grep -q '"ph"' "$folder/t.json"
}
opens send '^SEND, node[01] to node[01] #[0-9]+, 2 B: .* of 50 from' --on node0 "ib_send_lat -n 50 -d $device" \
    --on node1 "ib_send_lat -n 50 -d $device node0"
opens 'read #7' '^RDMA_READ, node1 to node0 #7, 2 B: ' --on node0 "ib_read_lat -n 50 -d $device" --on node1 "ib_read_lat -n 50 -d $device node0"
if [ "$device" = ibsim0 ]; then # its device writes to a program's own memory
    opens write '^RDMA_WRITE until found in memory, node[01] to node[01] #[0-9]+, 2 B: ' --on node0 "ib_write_lat -n 50 -d $device" \
        --on node1 "ib_write_lat -n 50 -d $device node0"
fi
UCX_NET_DEVICES=$device:1 UCX_TLS=rc opens send '^SEND, node[01] to node[01] #[0-9]+, 17 B: ' \
    --on node0 'ucx_perftest -t tag_lat -s 8 -n 100 -w 10' --on node1 'ucx_perftest node0 -t tag_lat -s 8 -n 100 -w 10'
grep -q '^    eager: \[{library: UCX, count: [1-9][0-9]*, bytes: [0-9]*}\]$' "$folder/out/exec.yaml" || {
    echo "UCX's eager copies are not counted:" >&2
    cat "$folder/out/exec.yaml" >&2
    exit 1
}
cat >"$folder/pp.c" <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank;
    char buffer[64] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 40; i++) {
        if (rank == i % 2) {
            MPI_Send(buffer, 64, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, 64, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return MPI_Finalize();
}
C
mpicc.openmpi -o "$folder/pp" "$folder/pp.c"
opens '' '^(RDMA_WRITE|SEND|SEND_WITH_IMM), node[01] to node[01] #[0-9]+, [0-9]+ B: ' --on node0 "mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --mca pml ob1 \
    --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_if_include $device --host node0,node1 $folder/pp"

# Each operation of the ping-pong and of MPI's start, not only the median: its pieces add up, none is a single piece, and
# what the other side did for more than 200 ns is named by the call.
opens '#1..256' '^SEND_WITH_IMM, node1 to node0 #[0-9]+, [0-9]+ B: ' --on node0 "mpirun.openmpi --mca plm_rsh_agent tcasim-rsh \
    --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_if_include $device --host node0,node1 $folder/pp"
python3 - "$folder/out/breakdown.csv" <<'PYTHON'
import collections, csv, sys
operations = collections.defaultdict(list)
with open(sys.argv[1]) as rows:
    for row in csv.DictReader(rows):
        operations[row['series'], row['bytes']].append(row)
assert len(operations) >= 30, f'{len(operations)} operations'
for operation, pieces in operations.items():
    assert len(pieces) > 1, f'{operation} has a single piece: {pieces}'
    unnamed = [row for row in pieces if row['part'] == 'remote library' and int(row['duration_ps']) > 200000
               and row['detail'] == 'declared costs']
    assert not unnamed, f'{operation}: {unnamed}'
PYTHON

# The option does not change what is simulated.
plain() {
    timeout 60 "$tcasim" exec "$scenario" "$@" --out "$folder/plain" --on node0 "ib_send_lat -n 50 -d $device" \
        --on node1 "ib_send_lat -n 50 -d $device node0" >/dev/null 2>&1 || :
    grep "$what" "$folder/plain/exec.yaml"
}
what='^simulated_ps'
times=$(plain)
[ "$times" = "$(plain --explain)" ] && [ "$times" = "$(plain --check)" ] || {
    echo "--explain or --check change the simulated time" >&2
    exit 1
}
what='^hash'
hash=$(plain)
[ "$hash" = "$(plain --trace "$folder/t.csv" --summary)" ] || {
    echo "a trace changes the run" >&2
    exit 1
}
grep -q 'verbs,ibv_post_send,.*opcode=SEND' "$folder/t.csv"
awk -F, 'NR > 1 && $2 < last { print "not in order: " $0; exit 1 } { last = $2 + 0 }' "$folder/t.csv"

# Nor does it change the addresses of a program's memory, and so the division into packets.
cat >"$folder/addresses.c" <<'C'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int on_stack;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    void *first = malloc(100);
    struct ibv_mr *mr = ibv_reg_mr(pd, first, 100, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    struct ibv_sge sge = {(uint64_t)first, 100, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    int posted = ibv_post_recv(qp, &wr, &bad);
    printf("%d %p %p %p\n", posted, first, malloc(5000), (void *)&on_stack);
    return 0;
}
C
cc -o "$folder/addresses" "$folder/addresses.c" -libverbs
addresses() {
    timeout 60 "$tcasim" exec "$scenario" "$@" --on node0 "$folder/addresses" 2>/dev/null
}
expected=$(addresses)
[ "${expected%% *}" = 0 ] && for option in --check --explain --summary "--trace $folder/t.csv"; do
    # shellcheck disable=SC2086 # an option and its value
    addresses $option | grep -qx "$expected" || {
        echo "$option moves a program's memory: $expected, and $(addresses $option)" >&2
        exit 1
    }
done

# The times of a summary are parts of the lifetime of a process, also if it sleeps until an event.
timeout 60 "$tcasim" exec "$scenario" --out "$folder/sums" --on node0 "ib_send_bw -n 50 -e -d $device" \
    --on node1 "ib_send_bw -n 50 -e -d $device node0" >/dev/null 2>&1
awk '/lived_ps:/ { lived = $2; sum = 0 } /(calls|polling|events|waiting)_ps:/ { sum += $2 }
    /registrations:/ { seen++; if (sum > lived || sum < lived / 4) { print "parts " sum " of " lived; exit 1 } }
    /eager:/ { print "perftest copies nothing"; exit 1 }
    END { if (seen != 2) { print seen " programs"; exit 1 } }' "$folder/sums/exec.yaml"
