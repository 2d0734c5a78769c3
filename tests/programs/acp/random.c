// random [SEEDS]: random programs on ACP (tests/acp/walk.h) as a program of acprun. Prints a line with the simulated
// time for each rank and seed; exit status 1: wrong data.
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../acp/walk.h"

static unsigned one(uint64_t seed)
{
    uint32_t rank = (uint32_t)acp_rank(), ranks = (uint32_t)acp_procs();
    acp_ga_t memories[WALK_RANKS_MAX], *words = acp_query_address(acp_query_starter_ga((int)rank));
    uint8_t *memory = aligned_alloc(4096, WALK_BYTES);
    walk_fill(memory, rank, ranks);
    acp_atkey_t key = acp_register_memory(memory, WALK_BYTES, 0);
    words[0] = acp_query_ga(key, memory);
    acp_sync();
    for (uint32_t i = 0; i < ranks; i++) {
        acp_complete(acp_copy(acp_query_starter_ga((int)rank) + 8, acp_query_starter_ga((int)i), 8, ACP_HANDLE_NULL));
        memories[i] = words[1];
    }
    acp_sync();
    unsigned wrong = walk_run(seed, rank, ranks, memories);
    acp_sync();
    wrong += walk_check(seed, memory, rank, ranks);
    acp_sync();
    wrong += acp_unregister_memory(key) != 0;
    free(memory);
    return wrong;
}

int main(int argc, char **argv)
{
    struct timespec now;
    unsigned wrong = 0;
    if (acp_init(&argc, &argv) != 0) {
        return 1;
    }
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        wrong += one(seed);
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("rank %d, seed %llu: %u wrong at %lld.%09ld s\n", acp_rank(), (unsigned long long)seed, wrong,
               (long long)now.tv_sec, now.tv_nsec);
    }
    acp_finalize();
    return wrong != 0;
}
