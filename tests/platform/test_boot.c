#include <string.h>

#include "tests/support/site.h"

TEST(Boot, BringsUpEveryBoardAndLeavesNothingInTheFabric)
{
    struct site site;
    site_init(&site, 3);
    site_build(&site);
    site_run(&site, NULL);
    EXPECT_GT(sim_now_ps(plat_machine_sim(site.machine)), 0);
    site_fini(&site);
}

static void read_scratch(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    peach2_register_write(board, 8, 0x11223344, 4);
    EXPECT_EQ(peach2_register_read(board, 8, 4, &site->value[0]), 0);
    // No register has this offset.
    EXPECT_NE(peach2_register_read(board, 0x380, 4, &site->value[1]), 0);
}

TEST(Boot, GivesProgramsTheRegistersOfTheirBoard)
{
    struct site site;
    site_init(&site, 1);
    site_build(&site);
    site_run(&site, read_scratch);
    EXPECT_EQ(site.value[0], 0x11223344);
    EXPECT_EQ(site.value[1], UINT64_MAX);
    site_fini(&site);
}

TEST(Boot, RunsBoardsOfDifferentClocks)
{
    struct site site;
    site_init(&site, 2);
    site.scenario->nodes[1].board.clock_mhz = 200;
    site_build(&site);
    site_run(&site, read_scratch);
    EXPECT_EQ(site.value[0], 0x11223344);
    site_fini(&site);
}

static void expect_refusal(struct site *site, const char *text)
{
    char error[256];
    EXPECT_NE(plat_machine_create(site->scenario, NULL, error, sizeof error, &site->machine), SIM_OK);
    EXPECT_CONTAINS(error, text);
    site_fini(site);
}

TEST(Boot, RefusesMoreHostMemoryThanTheWindowReaches)
{
    struct site site;
    site_init(&site, 2);
    site.scenario->nodes[0].host.memory_bytes = 16ull << 30;
    expect_refusal(&site, "node0: 16384 MiB of host memory do not fit");
}

TEST(Boot, RefusesJoinedNodesWithDifferentWindows)
{
    struct site site;
    site_init(&site, 2);
    site.scenario->nodes[1].board.window_base = 0x10000000000ull;
    expect_refusal(&site, "have their windows at different addresses");
}

TEST(Boot, RefusesACableAtTheHostsPort)
{
    struct site site;
    site_init(&site, 2);
    site.scenario->cables[0].to_port = SCN_PORT_N;
    expect_refusal(&site, "uses port N");
}
