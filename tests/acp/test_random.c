// Random programs (walk.h) inside the simulator.
#include <stdlib.h>

#include "crew.h"
#include "walk.h"

enum { REGION_COLOR = 1 };

struct plan {
    uint64_t seed;
    acp_ga_t memories[WALK_RANKS_MAX];
};

static void walk(struct crew_rank *member)
{
    struct plan *plan = member->crew->arg;
    uint32_t rank = (uint32_t)acp_rank(), ranks = (uint32_t)acp_procs();
    uint8_t *memory = malloc(WALK_BYTES);
    walk_fill(memory, rank, ranks);
    acp_atkey_t key = acp_register_memory(memory, WALK_BYTES, REGION_COLOR);
    EXPECT_NE(key, ACP_ATKEY_NULL);
    plan->memories[rank] = acp_query_ga(key, memory);
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(walk_run(plan->seed, rank, ranks, plan->memories), 0u);
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(walk_check(plan->seed, memory, rank, ranks), 0u);
    EXPECT_EQ(acp_unregister_memory(key), 0);
    free(memory);
}

static void walks(enum crew_device device, uint32_t ranks, uint64_t first, uint64_t last)
{
    const char *count = getenv("TCASIM_WALK_SEEDS_ACP");
    last = count != NULL ? first + strtoull(count, NULL, 10) : last;
    for (uint64_t seed = first; seed <= last; seed++) {
        struct plan plan = {.seed = seed};
        crew_do(device, ranks, walk, &plan);
    }
}

TEST(AcpRandom, ProgramsOfTwoRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 2, 1, 6);
}

TEST(AcpRandom, ProgramsOfThreeRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 3, 100, 106);
}

TEST(AcpRandom, ProgramsOfEightRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 8, 200, 203);
}

TEST(AcpRandom, ProgramsOnBoardsDoWhatPlainMemoryDoes)
{
    walks(CREW_TCA0, 4, 300, 302);
}
