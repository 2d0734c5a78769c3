// The board with a chip that only notes what it gets, between two links whose far ends are the test's.
#include "models/peach2/board.h"

#include <string.h>

#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

#define NS       1000ull
#define BAR0     0x4000000000ull
#define WINDOW   0x8000000000ull
#define HELD_MAX 64
#define BEAT_PS  4000u
#define TX_PS    (100 * NS)

struct far {
    sim_t *sim;
    pcie_end_t *end;
    bool deaf;
    pcie_tlp_t *held[HELD_MAX];
    unsigned held_count, received;
    uint64_t last_ps;
    uint64_t last_address;
    enum pcie_tlp_kind last_kind;
    enum pcie_cpl_status last_status;
};

struct rig {
    sim_t *sim;
    pcie_pool_t *pool;
    peach2_board_t *board;
    pcie_link_t *slot, *cable;
    struct far host, neighbour;
    // the chip
    bool lazy; // keeps what it gets
    pcie_tlp_t *kept[HELD_MAX];
    unsigned kept_count, rx_count, last_port, last_bar;
    bool ready[PEACH2_PORTS], room[PEACH2_PORTS];
};

// --- the chip ------------------------------------------------------------------------------------------------------

static void chip_rx(void *core, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    struct rig *rig = core;
    rig->rx_count++;
    rig->last_port = port;
    rig->last_bar = bar;
    if (rig->lazy) {
        rig->kept[rig->kept_count++] = tlp;
    } else {
        peach2_board_rx_taken(rig->board, port, tlp);
    }
}

static void chip_set_tx_ready(void *core, unsigned port, bool ready)
{
    ((struct rig *)core)->ready[port] = ready;
}

static void chip_set_tx_room(void *core, unsigned port, bool room)
{
    ((struct rig *)core)->room[port] = room;
}

static const struct peach2_core_ops chip_ops = {chip_rx, chip_set_tx_ready, chip_set_tx_room};

// --- the far ends --------------------------------------------------------------------------------------------------

static void far_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct far *far = ctx;
    far->received++;
    far->last_ps = sim_now_ps(far->sim);
    far->last_kind = tlp->kind;
    far->last_address = tlp->address;
    far->last_status = tlp->cpl_status;
    if (far->deaf) {
        far->held[far->held_count++] = tlp;
        return;
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static void far_hear(struct far *far)
{
    far->deaf = false;
    for (unsigned i = 0; i < far->held_count; i++) {
        pcie_end_release(far->end, far->held[i]);
        pcie_tlp_unref(far->held[i]);
    }
    far->held_count = 0;
}

static void far_ready(void *ctx, pcie_end_t *end)
{
    (void)ctx;
    (void)end;
}

static void far_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    (void)ctx;
    (void)end;
    (void)lost_tlps;
}

static const struct pcie_end_ops far_ops = {.receive = far_receive, .ready = far_ready, .down = far_down};

static void far_init(struct rig *rig, struct far *far, const char *name, enum peach2_port port, pcie_link_t **link)
{
    const struct pcie_end_config end = {.tx_ps = TX_PS,
                                        .headers = {2, 2, PCIE_CREDITS_INFINITE},
                                        .data = {32, 32, PCIE_CREDITS_INFINITE},
                                        .tx_queue_tlps = 2};
    const struct pcie_link_config config = {.generation = 2, .lanes = 8, .mps_bytes = 256, .ends = {end, end}};
    ASSERT_EQ(pcie_link_create(rig->sim, rig->pool, name, &config, link), SIM_OK);
    far->sim = rig->sim;
    far->end = pcie_link_end(*link, 0);
    pcie_end_attach(far->end, &far_ops, far);
    peach2_board_connect(rig->board, port, pcie_link_end(*link, 1));
}

static void rig_init(struct rig *rig)
{
    const struct sim_config config = {.seed = 1};
    *rig = (struct rig){.ready = {true, true, true, true}};
    ASSERT_EQ(sim_create(&config, &rig->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&rig->pool), SIM_OK);
    ASSERT_EQ(peach2_board_create(rig->sim, "board", BAR0, WINDOW, BEAT_PS, &rig->board), SIM_OK);
    peach2_board_set_core(rig->board, &chip_ops, rig);
    far_init(rig, &rig->host, "slot", PEACH2_PORT_N, &rig->slot);
    far_init(rig, &rig->neighbour, "cable", PEACH2_PORT_E, &rig->cable);
}

static void rig_fini(struct rig *rig)
{
    peach2_board_destroy(rig->board);
    pcie_link_destroy(rig->slot);
    pcie_link_destroy(rig->cable);
    EXPECT_EQ(pcie_pool_destroy(rig->pool), 0);
    sim_destroy(rig->sim);
}

static pcie_tlp_t *write_of(struct rig *rig, uint64_t address)
{
    return pcie_tlp_write(rig->pool, 0, address, 8, "12345678");
}

static void host_write(struct rig *rig, uint64_t address)
{
    EXPECT_TRUE(pcie_end_offer(rig->host.end, write_of(rig, address)));
    (void)sim_run(rig->sim);
}

static uint64_t counter(const struct rig *rig, const char *name)
{
    bool found;
    uint64_t value = sim_counter_value(rig->sim, "board", name, &found);
    EXPECT_TRUE(found);
    return value;
}

// --- BARs ----------------------------------------------------------------------------------------------------------

static void expect_bar(uint64_t address, unsigned bar)
{
    struct rig rig;
    rig_init(&rig);
    host_write(&rig, address);
    EXPECT_EQ(rig.rx_count, 1);
    EXPECT_EQ(rig.last_port, PEACH2_PORT_N);
    EXPECT_EQ(rig.last_bar, bar);
    rig_fini(&rig);
}

TEST(Board, TellsTheRegistersFromTheWindow)
{
    expect_bar(BAR0, 0);
    expect_bar(BAR0 + PEACH2_BAR0_BYTES - 8, 0);
    expect_bar(WINDOW, 2);
    expect_bar(WINDOW + PEACH2_WINDOW_BYTES - 8, 2);
}

static void expect_unclaimed(uint64_t address)
{
    struct rig rig;
    rig_init(&rig);
    host_write(&rig, address);
    EXPECT_EQ(rig.rx_count, 0);
    EXPECT_EQ(counter(&rig, "unclaimed_writes"), 1);
    rig_fini(&rig);
}

TEST(Board, DropsAndCountsWritesThatHitNoBar)
{
    expect_unclaimed(BAR0 - 8);
    expect_unclaimed(BAR0 + PEACH2_BAR0_BYTES);
    expect_unclaimed(WINDOW - 8);
    expect_unclaimed(WINDOW + PEACH2_WINDOW_BYTES);
}

TEST(Board, AnswersReadsThatHitNoBarAsUnsupported)
{
    struct rig rig;
    rig_init(&rig);
    EXPECT_TRUE(pcie_end_offer(rig.host.end, pcie_tlp_read(rig.pool, 0, 3, BAR0 - 8, 8)));
    (void)sim_run(rig.sim);
    EXPECT_EQ(rig.rx_count, 0);
    EXPECT_EQ(counter(&rig, "unclaimed_reads"), 1);
    EXPECT_EQ(rig.host.received, 1);
    EXPECT_EQ(rig.host.last_kind, PCIE_TLP_CPL);
    EXPECT_EQ(rig.host.last_status, PCIE_CPL_UR);
    rig_fini(&rig);
}

TEST(Board, TakesAnyAddressFromACable)
{
    struct rig rig;
    rig_init(&rig);
    EXPECT_TRUE(pcie_end_offer(rig.neighbour.end, write_of(&rig, 0x1000)));
    (void)sim_run(rig.sim);
    EXPECT_EQ(rig.rx_count, 1);
    EXPECT_EQ(rig.last_port, PEACH2_PORT_E);
    rig_fini(&rig);
}

// --- backpressure --------------------------------------------------------------------------------------------------

TEST(Board, StallsTheSenderWhileTheChipTakesNothing)
{
    struct rig rig;
    rig_init(&rig);
    rig.lazy = true;
    for (unsigned i = 0; i < 4; i++) {
        host_write(&rig, WINDOW + 64 * i);
    }
    EXPECT_EQ(rig.rx_count, 2); // as many as there are header credits
    rig.lazy = false;
    for (unsigned i = 0; i < 2; i++) {
        peach2_board_rx_taken(rig.board, PEACH2_PORT_N, rig.kept[i]);
    }
    (void)sim_run(rig.sim);
    EXPECT_EQ(rig.rx_count, 4);
    rig_fini(&rig);
}

TEST(Board, StallsTheChipWhileTheLinkHasNoRoomAndLosesNothing)
{
    struct rig rig;
    rig_init(&rig);
    rig.neighbour.deaf = true;
    unsigned sent = 0;
    for (; sent < HELD_MAX && rig.ready[PEACH2_PORT_E]; sent++) {
        peach2_board_tx(rig.board, PEACH2_PORT_E, write_of(&rig, WINDOW + 64 * sent));
        (void)sim_run(rig.sim);
    }
    // A packet of which beats were taken is finished all the same.
    peach2_board_tx(rig.board, PEACH2_PORT_E, write_of(&rig, WINDOW + 64 * sent++));
    EXPECT_FALSE(rig.ready[PEACH2_PORT_E]);
    EXPECT_TRUE(rig.ready[PEACH2_PORT_N]);
    EXPECT_EQ(counter(&rig, "transmit_stalls"), 1);
    far_hear(&rig.neighbour);
    (void)sim_run(rig.sim);
    EXPECT_TRUE(rig.ready[PEACH2_PORT_E]);
    EXPECT_EQ(rig.neighbour.received, sent);
    EXPECT_EQ(rig.neighbour.last_address, WINDOW + 64 * (sent - 1));
    rig_fini(&rig);
}

TEST(Board, DropsAndCountsWhatGoesToAPortWithoutACable)
{
    struct rig rig;
    rig_init(&rig);
    peach2_board_tx(rig.board, PEACH2_PORT_S, write_of(&rig, WINDOW));
    EXPECT_EQ(counter(&rig, "unconnected_tlps"), 1);
    EXPECT_TRUE(rig.ready[PEACH2_PORT_S]);
    rig_fini(&rig);
}

TEST(Board, CountsWhatALinkLosesWhenItGoesDownAndLetsTheChipGoOn)
{
    struct rig rig;
    rig_init(&rig);
    rig.neighbour.deaf = true;
    for (unsigned i = 0; i < HELD_MAX && rig.ready[PEACH2_PORT_E]; i++) {
        peach2_board_tx(rig.board, PEACH2_PORT_E, write_of(&rig, WINDOW));
        (void)sim_run(rig.sim);
    }
    pcie_link_set_down(rig.cable);
    (void)sim_run(rig.sim);
    EXPECT_TRUE(rig.ready[PEACH2_PORT_E]);
    EXPECT_TRUE(counter(&rig, "lost_tlps") > 0);
    far_hear(&rig.neighbour);
    rig_fini(&rig);
}

static void chip_send_256(void *ctx)
{
    struct rig *rig = ctx;
    peach2_board_tx(rig->board, PEACH2_PORT_E, pcie_tlp_write(rig->pool, 0, 4096, 256, NULL));
}

TEST(Board, BeginsToTransmitWithTheFirstBeatOfAPacket)
{
    struct rig rig;
    rig_init(&rig);
    sim_event_t last_beat;
    sim_event_init(&last_beat, chip_send_256, &rig);
    sim_event_schedule_at(rig.sim, &last_beat, 1000 * NS);

    (void)sim_run(rig.sim);

    // 16 beats of payload behind the header: begun 64 ns before the last one; 280 bytes take 70 ns on Gen2 x8
    EXPECT_EQ(rig.neighbour.last_ps, (1000 - 64) * NS + TX_PS + 70 * NS);
    rig_fini(&rig);
}
