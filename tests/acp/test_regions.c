// Registered memory: limits, ownership, and copies of memory that is unregistered.
#include <stdlib.h>
#include <string.h>

#include "crew.h"

enum { REGIONS = 255, REGION_BYTES = 64, COLOR = 1 };

static acp_ga_t shared[2]; // shared by the ranks of a test

// --- limits ---------------------------------------------------------------------------------------------------------

static void all_numbers(struct crew_rank *rank)
{
    static uint8_t memory[2][REGIONS + 1][REGION_BYTES];
    acp_atkey_t keys[REGIONS];
    for (int i = 0; i < REGIONS; i++) {
        keys[i] = acp_register_memory(memory[rank->number][i], REGION_BYTES, i % 2);
        acp_ga_t ga = acp_query_ga(keys[i], &memory[rank->number][i][5]);
        EXPECT_EQ(acp_query_rank(ga), (int)rank->number);
        EXPECT_EQ(acp_query_color(ga), i % 2);
        EXPECT_EQ(acp_query_address(ga), &memory[rank->number][i][5]);
    }
    EXPECT_EQ(acp_register_memory(memory[rank->number][REGIONS], REGION_BYTES, 0), ACP_ATKEY_NULL);
    shared[rank->number] = acp_query_ga(keys[200], memory[rank->number][200]);
    EXPECT_EQ(acp_sync(), 0);
    memory[0][200][0] = 7;
    if (rank->number == 0) {
        acp_complete(acp_copy(shared[1], shared[0], REGION_BYTES, ACP_HANDLE_NULL));
        EXPECT_EQ(memory[1][200][0], 7);
    }
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(acp_unregister_memory(keys[3]), 0);
    EXPECT_EQ(acp_unregister_memory(keys[3]), -1);
    EXPECT_NE(acp_register_memory(memory[rank->number][REGIONS], REGION_BYTES, 0), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, ARankHas255AndTheNextIsRefused)
{
    crew_do(CREW_IBSIM0, 2, all_numbers, NULL);
}

// --- reused numbers -------------------------------------------------------------------------------------------------

// Rank 1 uses the same number for other memory each time; rank 0 has the old table in its cache.
static void again(struct crew_rank *rank)
{
    enum { TIMES = 300 };
    uint32_t *blocks = calloc(TIMES, REGION_BYTES);
    uint32_t *own = crew_own(0);
    for (uint32_t i = 0; i < TIMES; i++) {
        uint32_t *block = blocks + i * (REGION_BYTES / sizeof *blocks);
        acp_atkey_t key = ACP_ATKEY_NULL;
        if (rank->number == 1) {
            block[0] = i;
            key = acp_register_memory(block, REGION_BYTES, 0);
            shared[1] = acp_query_ga(key, block);
        }
        EXPECT_EQ(acp_sync(), 0);
        if (rank->number == 0) {
            own[0] = UINT32_MAX;
            acp_complete(acp_copy(crew_at(0, 0), shared[1], 4, ACP_HANDLE_NULL));
            EXPECT_EQ(own[0], i);
        }
        EXPECT_EQ(acp_sync(), 0);
        if (rank->number == 1) {
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

// Rank 0 has read the whole table of rank 1 when a number in it gets other memory.
static void again_in_a_full_table(struct crew_rank *rank)
{
    static uint8_t memory[REGIONS + 1][REGION_BYTES]; // of rank 1
    acp_atkey_t keys[REGIONS], key = ACP_ATKEY_NULL;
    const uint8_t *own = crew_own(0);
    memory[3][0] = 5;
    memory[REGIONS][0] = 9;
    for (unsigned i = 0; rank->number == 1 && i < REGIONS; i++) {
        keys[i] = acp_register_memory(memory[i], REGION_BYTES, 0);
    }
    for (unsigned round = 0; round < 2; round++) {
        TEST_TRACE("round %u", round);
        if (rank->number == 1 && round == 1) {
            EXPECT_EQ(acp_unregister_memory(keys[3]), 0);
            key = acp_register_memory(memory[REGIONS], REGION_BYTES, 0);
        }
        if (rank->number == 1) {
            shared[1] = round == 0 ? acp_query_ga(keys[3], memory[3]) : acp_query_ga(key, memory[REGIONS]);
        }
        EXPECT_EQ(acp_sync(), 0);
        if (rank->number == 0) {
            acp_complete(acp_copy(crew_at(0, 0), shared[1], 1, ACP_HANDLE_NULL));
            EXPECT_EQ(own[0], round == 0 ? 5 : 9);
        }
        EXPECT_EQ(acp_sync(), 0);
    }
}

TEST(AcpRegions, ANumberOfAFullTableThatIsGivenOutAgainMeansTheNewMemory)
{
    crew_do(CREW_IBSIM0, 2, again_in_a_full_table, NULL);
}

// --- memory that is not registered ----------------------------------------------------------------------------------

static void gone(struct crew_rank *rank)
{
    static uint8_t memory[REGION_BYTES];
    acp_atkey_t key = ACP_ATKEY_NULL;
    if (rank->number == 1) {
        key = acp_register_memory(memory, REGION_BYTES, 0);
        shared[1] = acp_query_ga(key, memory);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(crew_at(0, 0), shared[1], 4, ACP_HANDLE_NULL)); // the table is in the cache now
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 1) {
        EXPECT_EQ(acp_unregister_memory(key), 0);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(crew_at(0, 0), shared[1], 4, ACP_HANDLE_NULL));
        FAIL("it goes on");
    }
    crew_sleep(rank, 100000); // otherwise its own request may detect the broken connection first
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRegions, ACopyFromAnUnregisteredRegionEndsTheProgram)
{
    crew_do_failing(2, gone, "rank 1 has unregistered the region of global address 0x");
}

static void beyond(struct crew_rank *rank)
{
    static uint8_t memory[REGION_BYTES];
    if (rank->number == 1) {
        shared[1] = acp_query_ga(acp_register_memory(memory, REGION_BYTES, 0), memory);
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(crew_at(0, 0), shared[1] + 32, REGION_BYTES, ACP_HANDLE_NULL));
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
    uint8_t *memory = memories[rank->number];
    acp_atkey_t key = acp_register_memory(memory, LONG, 0);
    shared[rank->number] = acp_query_ga(key, memory);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_complete(acp_copy(shared[1], shared[0], LONG, ACP_HANDLE_NULL));
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
    int ranks = acp_procs(), next = ((int)rank->number + 1) % ranks;
    acp_atkey_t key = acp_register_memory(memory[rank->number], REGION_BYTES, 0);
    EXPECT_NE(key, ACP_ATKEY_NULL);
    *(uint64_t *)crew_own(0) = 5;
    (void)acp_copy(crew_at(next, 8), crew_at(acp_rank(), 0), 8, ACP_HANDLE_NULL); // reset completes it
    EXPECT_EQ(acp_reset(ranks), -1);
    EXPECT_EQ(acp_reset(next), 0);
    EXPECT_EQ(acp_rank(), next);
    const uint64_t *own = crew_own(0);
    EXPECT_EQ(own[0], 0u);
    EXPECT_EQ(own[1], 0u);
    EXPECT_EQ(acp_query_ga(key, memory[rank->number]), ACP_GA_NULL);
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

// Rank 0 has a word copied from rank 2 to rank 1: one of these executes the copy.
static void copy_between_others(uint64_t value)
{
    uint64_t *own = crew_own(0);
    own[0] = value + (unsigned)acp_rank();
    EXPECT_EQ(acp_sync(), 0);
    if (acp_rank() == 0) {
        acp_complete(acp_copy(crew_at(1, 8), crew_at(2, 0), 8, ACP_HANDLE_NULL));
    }
    EXPECT_EQ(acp_sync(), 0);
    if (acp_rank() == 1) {
        EXPECT_EQ(own[1], value + 2);
    }
}

static void copy_before_and_after(struct crew_rank *rank)
{
    copy_between_others(100);
    EXPECT_EQ(acp_reset((int)rank->number), 0); // the same process executes it again
    copy_between_others(200);
}

TEST(AcpRegions, AfterAResetRanksExecuteTheCopiesOfOthersAgain)
{
    crew_do(CREW_IBSIM0, 3, copy_before_and_after, NULL);
}

static void count_queue_pairs(struct crew_rank *rank)
{
    EXPECT_EQ(acp_queue_pairs(), 1); // for introductions
    EXPECT_EQ(acp_reset(1 - (int)rank->number), 0);
    EXPECT_EQ(acp_queue_pairs(), 1);
}

TEST(AcpRegions, AResetGivesTheQueuePairsBack)
{
    crew_do(CREW_IBSIM0, 2, count_queue_pairs, NULL);
}
