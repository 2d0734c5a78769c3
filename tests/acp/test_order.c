// The guarantee of an order: a flag that is copied after data does not arrive before the data, whichever rank copies
// them.
#include <stdlib.h>
#include <string.h>

#include "crew.h"

enum { BLOCK_BYTES = 1 << 20, FLAG = 8192, ROUNDS = 6 };

struct blocks {
    acp_ga_t at[3];
    uint8_t *memory[3];
};

static uint8_t *block_register(struct crew_rank *rank, acp_atkey_t *key_out)
{
    struct blocks *blocks = rank->crew->arg;
    uint8_t *memory = aligned_alloc(4096, BLOCK_BYTES); // page alignment determines the packets
    memset(memory, rank->number == 0 ? 0x55 : 0, BLOCK_BYTES);
    *key_out = acp_register_memory(memory, BLOCK_BYTES, 0);
    blocks->memory[rank->number] = memory;
    blocks->at[rank->number] = acp_query_ga(*key_out, memory);
    EXPECT_EQ(acp_sync(), 0);
    return memory;
}

static bool block_is(const uint8_t *memory, uint8_t value)
{
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        if (memory[i] != value) {
            return false;
        }
    }
    return true;
}

static void flag_await(const struct crew_rank *rank, uint32_t value)
{
    const volatile uint32_t *flag = crew_own(FLAG);
    while (*flag != value) {
        crew_sleep(rank, 100);
    }
}

// Rank 0: a long put to rank 1, and after it a short one to the same rank, from another region.
static void put_and_flag(struct crew_rank *rank)
{
    acp_atkey_t key;
    uint8_t *memory = block_register(rank, &key);
    const struct blocks *blocks = rank->crew->arg;
    uint32_t *own = crew_own(0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (rank->number == 0) {
            memset(memory, (int)round, BLOCK_BYTES);
            own[0] = round;
            acp_handle_t data = acp_copy(blocks->at[1], blocks->at[0], BLOCK_BYTES, ACP_HANDLE_NULL);
            acp_handle_t other = acp_copy(crew_at(2, 64), crew_at(0, 0), 4, ACP_HANDLE_NULL);
            acp_handle_t order = round % 3 == 0 ? ACP_HANDLE_ALL : round % 3 == 1 ? data : other;
            acp_complete(acp_copy(crew_at(1, FLAG), crew_at(0, 0), 4, order));
        } else if (rank->number == 1) {
            flag_await(rank, round);
            EXPECT_TRUE(block_is(memory, (uint8_t)round));
        }
        EXPECT_EQ(acp_sync(), 0);
    }
    EXPECT_EQ(acp_unregister_memory(key), 0);
    free(memory);
}

TEST(AcpOrder, AFlagIsBehindTheDataOfAPut)
{
    struct blocks blocks = {0};
    crew_do(CREW_IBSIM0, 3, put_and_flag, &blocks);
}

// Rank 2 lets rank 0's block be copied to rank 1, and after it its own flag; the chain continues to rank 2 itself.
static void chain(struct crew_rank *rank)
{
    acp_atkey_t key;
    uint8_t *memory = block_register(rank, &key);
    const struct blocks *blocks = rank->crew->arg;
    if (rank->number == 2) {
        *(uint32_t *)crew_own(0) = 1;
        acp_handle_t first = acp_copy(blocks->at[1], blocks->at[0], BLOCK_BYTES, ACP_HANDLE_NULL);
        (void)acp_copy(crew_at(1, FLAG), crew_at(2, 0), 4, first);
        acp_handle_t last = acp_copy(blocks->at[2], blocks->at[1], BLOCK_BYTES, ACP_HANDLE_CONT);
        acp_complete(last);
        EXPECT_TRUE(block_is(memory, 0x55));
    } else if (rank->number == 1) {
        flag_await(rank, 1);
        EXPECT_TRUE(block_is(memory, 0x55));
    }
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(acp_unregister_memory(key), 0);
    free(memory);
}

TEST(AcpOrder, AChainGoesThroughThreeRanks)
{
    struct blocks blocks = {0};
    crew_do(CREW_IBSIM0, 3, chain, &blocks);
}

TEST(AcpOrder, AChainGoesThroughThreeBoards)
{
    struct blocks blocks = {0};
    struct crew crew;
    crew_init(&crew, CREW_TCA0, 4);
    crew.arg = &blocks;
    crew.ranks = 3;
    crew.mailbox.ranks = 3;
    crew_run(&crew, chain);
    crew_fini(&crew);
}

static void inquiries(struct crew_rank *rank)
{
    if (rank->number == 0) {
        acp_handle_t first = acp_copy(crew_at(1, 0), crew_at(0, 0), 8, ACP_HANDLE_NULL);
        acp_handle_t second = acp_copy(crew_at(1, 8), crew_at(0, 0), 8, first);
        EXPECT_GT(second, first);
        EXPECT_EQ(acp_inquire(second), 1);
        EXPECT_EQ(acp_inquire(second + 1), 0); // not of a GMA
        EXPECT_EQ(acp_inquire(ACP_HANDLE_NULL), 0);
        uint32_t asked = 0;
        while (acp_inquire(ACP_HANDLE_ALL) == 1) {
            asked++;
        }
        EXPECT_GT(asked, 1);
        EXPECT_EQ(acp_inquire(first), 0);
        acp_complete(second + 1);
        acp_complete(ACP_HANDLE_CONT);
    }
}

TEST(AcpOrder, HandlesAreAskedAndOfNoGmaAreComplete)
{
    crew_do(CREW_IBSIM0, 2, inquiries, NULL);
}

static uint64_t end_ps(void)
{
    struct blocks blocks = {0};
    struct crew crew;
    crew_init(&crew, CREW_IBSIM0, 3);
    crew.arg = &blocks;
    crew_run(&crew, put_and_flag);
    uint64_t now_ps = sim_now_ps(plat_machine_sim(crew.machine));
    crew_fini(&crew);
    return now_ps;
}

TEST(AcpOrder, EveryRunTakesTheSameTime)
{
    uint64_t first_ps = end_ps();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(end_ps(), first_ps);
    }
}
