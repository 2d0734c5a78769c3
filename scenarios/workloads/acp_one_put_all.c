// A program on ACP for acprun: rank 0 puts to all others (morie2016 5.1) and prints the memory that this takes: the
// growth of the process since acp_init, and the allocations of the library, by kind. Parts of the allocations that were
// never touched are not in the growth.
//
//     acp_one_put_all [DIVISOR]
//
// DIVISOR: divides the paper's number of repetitions. Its buffer of 4 MiB exists and is touched before.
#include <acp.h>
#include <acp_memory.h>

#include "acp_queue_pair.h"
#include "one_put_all.h"

static void parts_print(int ranks, size_t process_bytes)
{
    one_put_print("process", ranks, process_bytes);
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        one_put_print(acp_memory_names[kind], ranks, acp_memory_bytes((enum acp_memory_kind)kind));
    }
    unsigned queue_pairs = acp_queue_pairs();
    one_put_print("queue pairs", ranks, queue_pairs * acp_queue_pair_bytes(NULL));
}

int main(int argc, char **argv)
{
    unsigned char *data = malloc(ONE_PUT_LARGEST);
    memset(data, 1, ONE_PUT_LARGEST);
    size_t before = one_put_memory();
    if (acp_init(&argc, &argv) != 0) {
        return 1;
    }
    int divisor = argc > 1 ? atoi(argv[1]) : 1, rank = acp_rank(), ranks = acp_procs();
    acp_atkey_t key = acp_register_memory(data, ONE_PUT_LARGEST, 0);
    acp_ga_t *addresses = calloc((size_t)ranks, sizeof *addresses), mine = acp_query_ga(key, data);
    acp_ga_t *word = acp_query_address(acp_query_starter_ga(rank));
    word[0] = mine;
    acp_sync();
    for (int i = 0; i < ranks; i++) {
        acp_complete(acp_copy(acp_query_starter_ga(rank) + sizeof *word, acp_query_starter_ga(i), sizeof *word,
                              ACP_HANDLE_NULL));
        addresses[i] = word[1];
    }
    for (size_t bytes = 0; rank == 0 && bytes <= ONE_PUT_LARGEST; bytes = one_put_next(bytes)) {
        for (int round = 0; round < one_put_rounds(bytes, divisor); round++) {
            for (int to = 1; to < ranks; to++) {
                acp_copy(addresses[to], mine, bytes, ACP_HANDLE_NULL);
            }
            acp_complete(ACP_HANDLE_ALL);
        }
    }
    acp_sync();
    if (rank == 0) {
        parts_print(ranks, one_put_memory() - before);
    }
    acp_finalize();
    free(addresses);
    free(data);
    return 0;
}
