// Registered memory: how much of it, whose it is, and what becomes of copies when it goes.
#include <stdlib.h>
#include <string.h>

#include "crew.h"

enum { REGIONS = 255, REGION_BYTES = 64, COLOR = 1 };

static acp_ga_t told[2]; // between the ranks of a test

// --- how many -------------------------------------------------------------------------------------------------------

static void all_numbers(struct crew_rank *rank)
{
    static uint8_t memory[2][REGIONS + 1][REGION_BYTES];
    acp_atkey_t keys[REGIONS];
    for (int i = 0; i < REGIONS; i++) {
        keys[i] = acp_register_memory(memory[rank->place][i], REGION_BYTES, i % 2);
        acp_ga_t ga = acp_query_ga(keys[i], &memory[rank->place][i][5]);
        EXPECT_EQ(acp_query_rank(ga), (int)rank->place);
        EXPECT_EQ(acp_query_color(ga), i % 2);
        EXPECT_TRUE(acp_query_address(ga) == &memory[rank->place][i][5]);
    }
    EXPECT_EQ(acp_register_memory(memory[rank->place][REGIONS], REGION_BYTES, 0), ACP_ATKEY_NULL);
    told[rank->place] = acp_query_ga(keys[200], memory[rank->place][200]);
    EXPECT_EQ(acp_sync(), 0);
    memory[0][200][0] = 7;
    if (rank->place == 0) {
        acp_complete(acp_copy(told[1], told[0], REGION_BYTES, ACP_HANDLE_NULL));
        EXPECT_EQ(memory[1][200][0], 7);
    }
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(acp_unregister_memory(keys[3]), 0);
    EXPECT_EQ(acp_unregister_memory(keys[3]), -1);
    EXPECT_TRUE(acp_register_memory(memory[rank->place][REGIONS], REGION_BYTES, 0) != ACP_ATKEY_NULL);
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, ARankHas255AndTheNextIsRefused)
{
    crew_do(CREW_IBSIM0, 2, all_numbers, NULL);
}

// --- numbers that are given out again -------------------------------------------------------------------------------

// Rank 1 has the same number for other memory each time; rank 0 has cached the table before.
static void again(struct crew_rank *rank)
{
    enum { TIMES = 300 };
    uint32_t *blocks = calloc(TIMES, REGION_BYTES);
    uint32_t *own = crew_own(0);
    for (uint32_t i = 0; i < TIMES; i++) {
        uint32_t *block = blocks + i * (REGION_BYTES / sizeof *blocks);
        acp_atkey_t key = ACP_ATKEY_NULL;
        if (rank->place == 1) {
            block[0] = i;
            key = acp_register_memory(block, REGION_BYTES, 0);
            told[1] = acp_query_ga(key, block);
        }
        EXPECT_EQ(acp_sync(), 0);
        if (rank->place == 0) {
            own[0] = UINT32_MAX;
            acp_complete(acp_copy(crew_at(0, 0), told[1], 4, ACP_HANDLE_NULL));
            EXPECT_EQ(own[0], i);
        }
        EXPECT_EQ(acp_sync(), 0);
        if (rank->place == 1) {
            EXPECT_EQ(acp_unregister_memory(key), 0);
        }
    }
    EXPECT_EQ(acp_sync(), 0);
    free(blocks);
}

TEST(AcpRegions, ANumberThatIsGivenOutAgainMeansTheNewMemory)
{
    crew_do(CREW_IBSIM0, 2, again, NULL);
}

// --- what is not there ----------------------------------------------------------------------------------------------

static void gone(struct crew_rank *rank)
{
    static uint8_t memory[REGION_BYTES];
    acp_atkey_t key = ACP_ATKEY_NULL;
    if (rank->place == 1) {
        key = acp_register_memory(memory, REGION_BYTES, 0);
        told[1] = acp_query_ga(key, memory);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->place == 0) {
        acp_complete(acp_copy(crew_at(0, 0), told[1], 4, ACP_HANDLE_NULL)); // the table is cached now
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->place == 1) {
        EXPECT_EQ(acp_unregister_memory(key), 0);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->place == 0) {
        acp_complete(acp_copy(crew_at(0, 0), told[1], 4, ACP_HANDLE_NULL));
        FAIL("it goes on");
    }
    crew_sleep(rank, 100000); // else its own request may see the broken connection first
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, ACopyFromAnUnregisteredRegionEndsTheProgram)
{
    crew_do_failing(2, gone, "rank 1 has unregistered the region of global address 0x");
}

static void beyond(struct crew_rank *rank)
{
    static uint8_t memory[REGION_BYTES];
    if (rank->place == 1) {
        told[1] = acp_query_ga(acp_register_memory(memory, REGION_BYTES, 0), memory);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->place == 0) {
        acp_complete(acp_copy(crew_at(0, 0), told[1] + 32, REGION_BYTES, ACP_HANDLE_NULL));
        FAIL("it goes on");
    }
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, ACopyBeyondARegionsEndEndsTheProgram)
{
    crew_do_failing(2, beyond, "rank 1 has no region for the 64 bytes at global address 0x");
}

static void under_way(struct crew_rank *rank)
{
    enum { LONG = 4 << 20 };
    static uint8_t memories[2][LONG]; // the program is abandoned
    uint8_t *memory = memories[rank->place];
    acp_atkey_t key = acp_register_memory(memory, LONG, 0);
    told[rank->place] = acp_query_ga(key, memory);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->place == 0) {
        acp_complete(acp_copy(told[1], told[0], LONG, ACP_HANDLE_NULL));
        FAIL("it goes on");
    }
    crew_sleep(rank, 100000);
    EXPECT_EQ(acp_unregister_memory(key), 0);
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, UnregisteringUnderACopyEndsTheProgram)
{
    crew_do_failing(2, under_way, "rank 1 has unregistered the region of global address 0x");
}

// --- acp_reset ------------------------------------------------------------------------------------------------------

static void reset(struct crew_rank *rank)
{
    static uint8_t memory[3][REGION_BYTES];
    int ranks = acp_procs(), next = ((int)rank->place + 1) % ranks;
    acp_atkey_t key = acp_register_memory(memory[rank->place], REGION_BYTES, 0);
    EXPECT_TRUE(key != ACP_ATKEY_NULL);
    *(uint64_t *)crew_own(0) = 5;
    (void)acp_copy(crew_at(next, 8), crew_at(acp_rank(), 0), 8, ACP_HANDLE_NULL); // reset completes it
    EXPECT_EQ(acp_reset(ranks), -1);
    EXPECT_EQ(acp_reset(next), 0);
    EXPECT_EQ(acp_rank(), next);
    const uint64_t *own = crew_own(0);
    EXPECT_EQ(own[0], 0u);
    EXPECT_EQ(own[1], 0u);
    EXPECT_EQ(acp_query_ga(key, memory[rank->place]), ACP_GA_NULL);
    *(uint64_t *)crew_own(0) = 100u + (unsigned)next;
    EXPECT_EQ(acp_sync(), 0);
    acp_complete(acp_copy(crew_at(next, 8), crew_at((next + 1) % ranks, 0), 8, ACP_HANDLE_NULL));
    EXPECT_EQ(own[1], 100u + (unsigned)((next + 1) % ranks));
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, AResetGivesOtherRanksAndZeroedStarterMemory)
{
    crew_do(CREW_IBSIM0, 3, reset, NULL);
}
