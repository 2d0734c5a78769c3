// Copies between ranks, in every direction.
#include <string.h>

#include "crew.h"

static void put_and_get(struct crew_rank *rank)
{
    uint64_t *own = crew_own(0);
    own[0] = 100u + (unsigned)acp_rank();
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(crew_at(1, 8), crew_at(0, 0), 8, ACP_HANDLE_NULL));
        acp_complete(acp_copy(crew_at(0, 8), crew_at(1, 0), 8, ACP_HANDLE_NULL));
        EXPECT_EQ(own[1], 101u);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 1) {
        EXPECT_EQ(own[1], 100u);
    }
}

TEST(AcpCopy, PutsAndGetsStarterMemory)
{
    crew_do(CREW_IBSIM0, 2, put_and_get, NULL);
}

TEST(AcpCopy, PutsAndGetsStarterMemoryOnBoards)
{
    crew_do(CREW_TCA0, 2, put_and_get, NULL);
}

// --- long copies ----------------------------------------------------------------------------------------------------

enum { LONG_WORDS = 17 << 18, INSIDE_BYTES = 1 << 20 }; // 17 MiB: the library moves at most 16 MiB with one request

static acp_ga_t ends[2]; // shared by the ranks of a test

static void put_seventeen(struct crew_rank *rank)
{
    static uint32_t words[2][LONG_WORDS];
    acp_atkey_t key = acp_register_memory(words[rank->number], sizeof words[0], 0);
    ends[rank->number] = acp_query_ga(key, words[rank->number]);
    for (uint32_t i = 0; i < LONG_WORDS; i++) {
        words[rank->number][i] = rank->number == 0 ? i + 1 : 0;
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(ends[1], ends[0], sizeof words[0], ACP_HANDLE_NULL));
        EXPECT_MEMEQ(words[1], words[0], sizeof words[0]);
    }
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(acp_unregister_memory(key), 0);
}

TEST(AcpCopy, OfManyMegabytesBringsEachByteToItsPlace)
{
    crew_do(CREW_IBSIM0, 2, put_seventeen, NULL);
}

static void copy_inside(struct crew_rank *rank)
{
    static uint8_t memory[2][INSIDE_BYTES];
    acp_atkey_t key = acp_register_memory(memory, sizeof memory, 0);
    uint64_t start_ps = crew_now_ps(rank);
    acp_complete(acp_copy(acp_query_ga(key, memory[1]), acp_query_ga(key, memory[0]), INSIDE_BYTES, ACP_HANDLE_NULL));
    EXPECT_GE(crew_now_ps(rank) - start_ps,
              INSIDE_BYTES * SIM_PS_PER_US / rank->crew->scenario->nodes[0].host.copy_bytes_per_us);
    EXPECT_EQ(acp_unregister_memory(key), 0);
}

// The processor of the rank's thread copies it.
TEST(AcpCopy, InsideARankTakesTheTimeOfTheProcessor)
{
    crew_do(CREW_IBSIM0, 1, copy_inside, NULL);
}
