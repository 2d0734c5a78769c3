// Refusals of every function.
#include "crew.h"

enum { STARTER = 10240 };

static void before_init(void *arg, peach2_handle_t *board)
{
    bool *ran = arg;
    uint64_t word = 0;
    (void)board;
    EXPECT_EQ(acp_init(NULL, NULL), -1); // there are no start-up data
    EXPECT_EQ(acp_rank(), -1);
    EXPECT_EQ(acp_procs(), -1);
    EXPECT_EQ(acp_colors(), -1);
    EXPECT_EQ(acp_sync(), -1);
    EXPECT_EQ(acp_reset(0), -1);
    EXPECT_EQ(acp_finalize(), -1);
    EXPECT_EQ(acp_query_starter_ga(0), ACP_GA_NULL);
    EXPECT_EQ(acp_register_memory(&word, sizeof word, 0), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_unregister_memory(1), -1);
    EXPECT_EQ(acp_query_ga(1, &word), ACP_GA_NULL);
    EXPECT_NULL(acp_query_address(1));
    EXPECT_EQ(acp_query_rank(1), -1);
    EXPECT_EQ(acp_query_color(1), -1);
    EXPECT_EQ(acp_copy(1, 1, 8, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
    EXPECT_EQ(acp_add8(1, 1, 8, ACP_HANDLE_NULL), ACP_HANDLE_NULL);
    EXPECT_EQ(acp_inquire(ACP_HANDLE_ALL), 0);
    acp_complete(ACP_HANDLE_ALL);
    *ran = true;
}

TEST(AcpRefusals, NothingGoesBeforeTheLibraryIsInitialised)
{
    struct crew crew;
    bool ran = false;
    crew_init(&crew, CREW_IBSIM0, 1);
    plat_machine_set_program(crew.machine, 0, before_init, &ran);
    EXPECT_EQ(plat_machine_run(crew.machine), SIM_RUN_DONE);
    EXPECT_TRUE(ran);
    crew_fini(&crew);
}

static void addresses(void)
{
    static uint64_t word;
    EXPECT_EQ(acp_query_starter_ga(-1), ACP_GA_NULL);
    EXPECT_EQ(acp_query_starter_ga(2), ACP_GA_NULL);
    EXPECT_EQ(acp_query_rank(ACP_GA_NULL), -1);
    EXPECT_EQ(acp_query_color(ACP_GA_NULL), -1);
    EXPECT_EQ(acp_query_rank(UINT64_MAX), -1); // not of a rank
    EXPECT_NULL(acp_query_address(crew_at(1, 0)));
    EXPECT_NULL(acp_query_address(crew_at(0, STARTER)));
    EXPECT_NULL(acp_query_address(ACP_GA_NULL));
    EXPECT_EQ(acp_colors(), 2);
    EXPECT_EQ(acp_register_memory(NULL, 8, 0), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_register_memory(&word, 0, 0), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_register_memory(&word, sizeof word, 2), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_register_memory(&word, sizeof word, -1), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_register_memory(&word, (size_t)1 << 35, 0), ACP_ATKEY_NULL);
    EXPECT_EQ(acp_register_memory((void *)4096, 8, 0), ACP_ATKEY_NULL); // not memory of the program
    acp_atkey_t key = acp_register_memory(&word, sizeof word, 1);
    EXPECT_EQ(acp_query_ga(key, &word + 1), ACP_GA_NULL);
    EXPECT_EQ(acp_query_ga(key + 1, &word), ACP_GA_NULL); // not a key
    EXPECT_EQ(acp_query_ga(crew_at(1, 0), &word), ACP_GA_NULL);
    EXPECT_EQ(acp_unregister_memory(key + 1), -1);
    EXPECT_EQ(acp_unregister_memory(crew_at(0, 0)), -1); // starter memory cannot be unregistered
    EXPECT_EQ(acp_unregister_memory(ACP_ATKEY_NULL), -1);
    EXPECT_EQ(acp_unregister_memory(key), 0);
}

static void commands(void)
{
    acp_ga_t own = crew_at(0, 0), other = crew_at(1, 0), none = ACP_GA_NULL;
    acp_handle_t no = ACP_HANDLE_NULL;
    EXPECT_EQ(acp_copy(none, own, 8, no), no);
    EXPECT_EQ(acp_copy(own, none, 8, no), no);
    EXPECT_EQ(acp_copy(own + STARTER - 4, other, 8, no), no); // beyond the end of the own memory
    EXPECT_EQ(acp_copy(other, own + STARTER - 4, 8, no), no);
    EXPECT_EQ(acp_copy(other, own, 8, 1), no); // the handle of a future GMA
    EXPECT_EQ(acp_copy(other, own, 8, -3), no);
    EXPECT_EQ(acp_copy(other, own, (size_t)1 << 40, no), no);
    EXPECT_EQ(acp_add8(other, own, 1, no), no); // the old value must go to the own memory
    EXPECT_EQ(acp_add8(own, none, 1, no), no);
    EXPECT_EQ(acp_add8(own + 4, other, 1, no), no);
    EXPECT_EQ(acp_add8(own, other + 4, 1, no), no);
    EXPECT_EQ(acp_add4(own, other + 2, 1, no), no);
    EXPECT_EQ(acp_cas4(own + 1, other, 1, 2, no), no);
    EXPECT_EQ(acp_cas8(own, other + 4, 1, 2, no), no);
    EXPECT_EQ(acp_swap4(other, other, 1, no), no);
    EXPECT_EQ(acp_swap8(none, other, 1, no), no);
    EXPECT_EQ(acp_xor4(own, own + STARTER, 1, no), no);
    EXPECT_EQ(acp_xor8(own, other, 1, 5), no);
    EXPECT_EQ(acp_or4(own + 3, other, 1, no), no);
    EXPECT_EQ(acp_or8(own + 3, other, 1, no), no);
    EXPECT_EQ(acp_and4(own + 3, other, 1, no), no);
    EXPECT_EQ(acp_and8(own + 3, other, 1, no), no);
    acp_handle_t good = acp_copy(other, own, 0, no); // a copy of no bytes is allowed
    EXPECT_EQ(good, 1);
    acp_complete(good);
}

static void refused(struct crew_rank *rank)
{
    EXPECT_EQ(acp_init(NULL, NULL), -1); // only once
    EXPECT_EQ(acp_reset(-1), -1);
    EXPECT_EQ(acp_reset(2), -1);
    if (rank->number == 0) {
        addresses();
        commands();
    }
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRefusals, WrongArgumentsAreRefusedAndNothingElseHappens)
{
    crew_do(CREW_IBSIM0, 2, refused, NULL);
}

static void aborting(struct crew_rank *rank)
{
    if (rank->number == 1) {
        acp_abort("the input is wrong");
        FAIL("it goes on");
    }
    EXPECT_EQ(acp_sync(), 0);
}

TEST(AcpRefusals, AnAbortEndsAllRanks)
{
    crew_do_failing(2, aborting, "acp: rank 1: the input is wrong");
}

static void never(struct crew_rank *rank)
{
    (void)rank;
    FAIL("it goes on");
}

TEST(AcpRefusals, TwoProcessesOfOneRankDoNotStart)
{
    struct crew crew;
    crew_init(&crew, CREW_IBSIM0, 2);
    crew.same_rank = true;
    crew_run(&crew, never);
    crew_fini(&crew);
}
