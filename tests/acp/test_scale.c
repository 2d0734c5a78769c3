// Many ranks, and more commands than the queues hold.
#include "crew.h"

enum { COPIES = 10000, MANY = 256, INITIATORS = 15, EACH = 400 };

static void copies(struct crew_rank *rank)
{
    uint32_t *own = crew_own(0);
    for (uint32_t i = 0; rank->number == 0 && i < COPIES; i++) {
        own[0] = i + 1;
        acp_complete(acp_copy(crew_at(1, 0), crew_at(0, 0), 8, ACP_HANDLE_NULL));
    }
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(own[0], COPIES);
}

TEST(AcpScale, TenThousandCopiesArriveOneAfterTheOther)
{
    crew_do(CREW_IBSIM0, 2, copies, NULL);
}

static void all_at_once(struct crew_rank *rank)
{
    uint64_t *own = crew_own(0);
    own[1] = 1;
    for (uint32_t i = 0; rank->number == 0 && i < COPIES; i++) {
        EXPECT_EQ(acp_add8(crew_at(0, 0), crew_at(1, 0), 1, ACP_HANDLE_NULL), i + 1);
    }
    acp_complete(ACP_HANDLE_ALL);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number != 0) {
        EXPECT_EQ(own[0], COPIES);
    }
}

TEST(AcpScale, AFullCommandQueueHoldsUpTheProgram)
{
    crew_do(CREW_IBSIM0, 2, all_at_once, NULL);
}

// More commands than the target's buffer can hold: every rank's queue may be full of them.
static void on_one_target(struct crew_rank *rank)
{
    uint64_t *own = crew_own(0);
    for (uint32_t i = 0; rank->number != 0 && i < EACH; i++) {
        EXPECT_NE(acp_add8(crew_at(acp_rank(), 8), crew_at(0, 0), 1, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
    }
    acp_complete(ACP_HANDLE_ALL);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        EXPECT_EQ(own[0], INITIATORS * EACH);
    }
}

TEST(AcpScale, FifteenInitiatorsFillTheBufferOfOneTarget)
{
    crew_do(CREW_IBSIM0, INITIATORS + 1, on_one_target, NULL);
}

// The target's thread copies for some milliseconds, and takes no command meanwhile.
static void on_a_busy_target(struct crew_rank *rank)
{
    enum { BUSY_BYTES = 32 << 20 };
    static uint8_t memory[2][BUSY_BYTES]; // of rank 0
    uint64_t *own = crew_own(0);
    if (rank->number != 0) {
        acp_complete(acp_add8(crew_at(acp_rank(), 8), crew_at(0, 0), 1, ACP_HANDLE_NULL)); // they are connected
    }
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        acp_atkey_t key = acp_register_memory(memory, sizeof memory, 0);
        (void)acp_copy(acp_query_ga(key, memory[1]), acp_query_ga(key, memory[0]), BUSY_BYTES, ACP_HANDLE_NULL);
    }
    for (uint32_t i = 0; rank->number != 0 && i < EACH; i++) {
        EXPECT_NE(acp_add8(crew_at(acp_rank(), 8), crew_at(0, 0), 1, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
    }
    acp_complete(ACP_HANDLE_ALL);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number == 0) {
        EXPECT_EQ(own[0], INITIATORS * (EACH + 1));
    }
}

TEST(AcpScale, CommandsForABusyTargetWaitUntilItsBufferHasRoom)
{
    crew_do(CREW_IBSIM0, INITIATORS + 1, on_a_busy_target, NULL);
}

// Ranks 0 and 1 send commands to each other, while the others fill the buffers of both: their replies must overtake
// their own commands.
static void on_each_other(struct crew_rank *rank)
{
    enum { OF_TARGETS = 1024, OF_OTHERS = 3000 };
    uint64_t *own = crew_own(0);
    uint32_t count = rank->number < 2 ? OF_TARGETS : OF_OTHERS;
    for (uint32_t i = 0; i < count; i++) {
        int to = rank->number < 2 ? 1 - (int)rank->number : (int)(i % 2);
        EXPECT_NE(acp_add8(crew_at(acp_rank(), 8), crew_at(to, 0), 1, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
    }
    acp_complete(ACP_HANDLE_ALL);
    EXPECT_EQ(acp_sync(), 0);
    if (rank->number < 2) {
        EXPECT_EQ(own[0], OF_TARGETS + OF_OTHERS / 2 * (uint64_t)(acp_procs() - 2));
    }
}

TEST(AcpScale, TargetsThatAskEachOtherAnswerAllTheSame)
{
    crew_do(CREW_IBSIM0, 8, on_each_other, NULL);
}

static void barriers(struct crew_rank *rank)
{
    EXPECT_EQ(acp_sync(), 0);
    acp_complete(acp_copy(crew_at((acp_rank() + 1) % MANY, 0), crew_at(acp_rank(), 8), 8, ACP_HANDLE_NULL));
    EXPECT_EQ(acp_sync(), 0);
    EXPECT_EQ(acp_procs(), MANY);
    EXPECT_EQ((uint32_t)acp_rank(), rank->number);
    EXPECT_LE(acp_queue_pairs(), 17); // for 8 rounds in both directions, and the UD queue pair
}

TEST(AcpScale, TwoHundredAndFiftySixRanksMeet)
{
    crew_do(CREW_IBSIM0, MANY, barriers, NULL);
}

static void connected(struct crew_rank *rank)
{
    (void)rank;
    EXPECT_EQ(acp_queue_pairs(), 16u); // one for each peer
}

TEST(AcpScale, AllConnectAtTheStartWhereThatIsAsked)
{
    struct crew crew;
    crew_init(&crew, CREW_IBSIM0, 16);
    crew.connect_all = true;
    crew_run(&crew, connected);
    crew_fini(&crew);
}
