// The share of each board in the cables if all send in the same direction.
#include "tests/support/site.h"

#define BASE  (8 * MIB)
#define BYTES (512u << 10)

struct sharing {
    struct site site;
    struct sender {
        struct sharing *sharing;
        uint32_t node;
        uint64_t end_ps;
    } senders[SITE_NODES_MAX];
};

// To the last node of the line.
static void send_all(void *arg, peach2_handle_t *board)
{
    struct sender *sender = arg;
    const struct site *site = &sender->sharing->site;
    struct backend_buffer source = site_pinned(board, BYTES);
    site_fill(source.address, BYTES, sender->node);
    uint64_t address = BASE + sender->node * (uint64_t)BYTES;
    uint64_t target = peach2_window_address(board, site->scenario->node_count - 1, address);
    EXPECT_EQ(site_dma(board, 0, source.bus_address, target, BYTES), 0);
    sender->end_ps = sim_now_ps(plat_machine_sim(site->machine));
}

static void share(struct sharing *sharing, enum scn_fidelity fidelity)
{
    *sharing = (struct sharing){0};
    site_init(&sharing->site, SITE_NODES_MAX);
    for (uint32_t i = 0; i < SITE_NODES_MAX; i++) {
        sharing->site.scenario->nodes[i].board.fidelity = fidelity;
    }
    site_build(&sharing->site);
    for (uint32_t i = 0; i < SITE_NODES_MAX - 1; i++) {
        sharing->senders[i].sharing = sharing;
        sharing->senders[i].node = i;
        plat_machine_set_program(sharing->site.machine, i, send_all, &sharing->senders[i]);
    }
    EXPECT_EQ(plat_machine_run(sharing->site.machine), SIM_RUN_DONE);
    EXPECT_EQ(plat_machine_live_packets(sharing->site.machine), 0);
    for (uint32_t i = 0; i < SITE_NODES_MAX - 1; i++) {
        EXPECT_TRUE(
            site_is_filled(site_memory(&sharing->site, SITE_NODES_MAX - 1, BASE + i * (uint64_t)BYTES), BYTES, i));
    }
    site_fini(&sharing->site);
}

// Node 2 sends half of the bytes on its cable, and the two nodes behind it share the other half. Their cable is then
// half as fast, so that a hold has to be twice as long there.
static void expect_turns(enum scn_fidelity fidelity)
{
    struct sharing sharing;
    share(&sharing, fidelity);
    uint64_t far = sharing.senders[0].end_ps, near = sharing.senders[1].end_ps, last = sharing.senders[2].end_ps;
    EXPECT_BETWEEN(far, near * 9 / 10, near);
    EXPECT_BETWEEN(last, near * 6 / 10, near * 7 / 10);
}

TEST(Share, ABoardAndTheBoardsBehindItTakeTurns)
{
    expect_turns(SCN_FIDELITY_RTL);
    expect_turns(SCN_FIDELITY_TWIN);
}
