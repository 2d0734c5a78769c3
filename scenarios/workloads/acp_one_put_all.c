// A program on ACP for acprun: rank 0 puts to all others (morie2016 5.1) and prints the memory that this takes: what the
// library has allocated, in all and by kind, with the starter memory, and the growth of the process since acp_init.
// Parts of the allocations that were never touched are not in the growth.
//
//     acp_one_put_all [DIVISOR]
//
// DIVISOR: divides the paper's number of repetitions. What is put lies in starter memory, of which each rank needs 4 MiB
// (acprun -smemsize 4194304).
#include <acp.h>
#include <acp_memory.h>

#include "acp_queue_pair.h"
#include "one_put_all.h"

static void parts_print(int ranks, size_t process_bytes)
{
    unsigned queue_pairs = acp_queue_pairs();
    size_t requested = queue_pairs * acp_queue_pair_bytes(NULL);
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        requested += acp_memory_bytes((enum acp_memory_kind)kind);
    }
    one_put_print("requested", ranks, requested);
    one_put_print("process", ranks, process_bytes);
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        one_put_print(acp_memory_names[kind], ranks, acp_memory_bytes((enum acp_memory_kind)kind));
    }
    one_put_print("queue pairs", ranks, queue_pairs * acp_queue_pair_bytes(NULL));
}

int main(int argc, char **argv)
{
    size_t before = one_put_memory();
    if (acp_init(&argc, &argv) != 0) {
        return 1;
    }
    int divisor = argc > 1 ? atoi(argv[1]) : 1, rank = acp_rank(), ranks = acp_procs();
    if (acp_memory_bytes(ACP_MEMORY_STARTER) < ONE_PUT_LARGEST) {
        fprintf(stderr, "acp_one_put_all: needs %d bytes of starter memory (acprun -smemsize)\n", ONE_PUT_LARGEST);
        return 1;
    }
    acp_ga_t mine = acp_query_starter_ga(rank);
    memset(acp_query_address(mine), 1, ONE_PUT_LARGEST);
    acp_sync();
    for (size_t bytes = 0; rank == 0 && bytes <= ONE_PUT_LARGEST; bytes = one_put_next(bytes)) {
        for (int round = 0; round < one_put_rounds(bytes, divisor); round++) {
            for (int to = 1; to < ranks; to++) {
                acp_copy(acp_query_starter_ga(to), mine, bytes, ACP_HANDLE_NULL);
            }
            acp_complete(ACP_HANDLE_ALL);
        }
    }
    acp_sync();
    if (rank == 0) {
        parts_print(ranks, one_put_memory() - before);
    }
    acp_finalize();
    return 0;
}
