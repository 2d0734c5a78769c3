// The board with a chip that only records what it gets, between two links whose far ends belong to the test.
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

struct fixture {
    sim_t *sim;
    pcie_pool_t *pool;
    peach2_board_t *board;
    pcie_link_t *slot, *cable;
    struct far host, neighbour;
    // the chip
    bool lazy; // keeps what it gets in the receive buffer
    pcie_tlp_t *kept[HELD_MAX];
    unsigned kept_count, rx_count, resets, last_port, last_bar;
    bool ready[PEACH2_PORTS], room[PEACH2_PORTS];
};

// --- the chip ------------------------------------------------------------------------------------------------------

static void chip_rx(void *core, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    struct fixture *fixture = core;
    fixture->rx_count++;
    fixture->last_port = port;
    fixture->last_bar = bar;
    if (fixture->lazy) {
        fixture->kept[fixture->kept_count++] = tlp;
    } else {
        peach2_board_rx_taken(fixture->board, port, tlp);
    }
}

static void chip_set_tx_ready(void *core, unsigned port, bool ready)
{
    ((struct fixture *)core)->ready[port] = ready;
}

static void chip_set_tx_room(void *core, unsigned port, bool room)
{
    ((struct fixture *)core)->room[port] = room;
}

static void chip_reset(void *core)
{
    ((struct fixture *)core)->resets++;
}

static const struct peach2_core_ops chip_ops = {
    .rx = chip_rx, .set_tx_ready = chip_set_tx_ready, .set_tx_room = chip_set_tx_room, .reset = chip_reset};

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

static void far_init(struct fixture *fixture, struct far *far, const char *name, enum peach2_port port,
                     pcie_link_t **link)
{
    const struct pcie_end_config end = {.tx_ps = TX_PS,
                                        .headers = {2, 2, PCIE_CREDITS_INFINITE},
                                        .data = {32, 32, PCIE_CREDITS_INFINITE},
                                        .tx_queue_tlps = 2};
    const struct pcie_link_config config = {.generation = 2, .lanes = 8, .mps_bytes = 256, .ends = {end, end}};
    ASSERT_EQ(pcie_link_create(fixture->sim, fixture->pool, name, &config, link), SIM_OK);
    far->sim = fixture->sim;
    far->end = pcie_link_end(*link, 0);
    pcie_end_attach(far->end, &far_ops, far);
    peach2_board_connect(fixture->board, port, pcie_link_end(*link, 1));
}

static void fixture_init(struct fixture *fixture)
{
    const struct sim_config config = {.seed = 1};
    *fixture = (struct fixture){.ready = {true, true, true, true}};
    ASSERT_EQ(sim_create(&config, &fixture->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&fixture->pool), SIM_OK);
    ASSERT_EQ(peach2_board_create(fixture->sim, "board", BAR0, WINDOW, BEAT_PS, &fixture->board), SIM_OK);
    peach2_board_set_core(fixture->board, &chip_ops, fixture);
    far_init(fixture, &fixture->host, "slot", PEACH2_PORT_N, &fixture->slot);
    far_init(fixture, &fixture->neighbour, "cable", PEACH2_PORT_E, &fixture->cable);
}

static void fixture_fini(struct fixture *fixture)
{
    peach2_board_destroy(fixture->board);
    pcie_link_destroy(fixture->slot);
    pcie_link_destroy(fixture->cable);
    EXPECT_EQ(pcie_pool_destroy(fixture->pool), 0);
    sim_destroy(fixture->sim);
}

static pcie_tlp_t *write_of(struct fixture *fixture, uint64_t address)
{
    return pcie_tlp_write(fixture->pool, 0, address, 8, "12345678");
}

static void host_write(struct fixture *fixture, uint64_t address)
{
    EXPECT_TRUE(pcie_end_offer(fixture->host.end, write_of(fixture, address)));
    (void)sim_run(fixture->sim);
}

static uint64_t counter(const struct fixture *fixture, const char *name)
{
    bool found;
    uint64_t value = sim_counter_value(fixture->sim, "board", name, &found);
    EXPECT_TRUE(found);
    return value;
}

// --- BARs ----------------------------------------------------------------------------------------------------------

static void expect_bar(uint64_t address, unsigned bar)
{
    struct fixture fixture;
    fixture_init(&fixture);
    host_write(&fixture, address);
    EXPECT_EQ(fixture.rx_count, 1);
    EXPECT_EQ(fixture.last_port, PEACH2_PORT_N);
    EXPECT_EQ(fixture.last_bar, bar);
    fixture_fini(&fixture);
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
    struct fixture fixture;
    fixture_init(&fixture);
    host_write(&fixture, address);
    EXPECT_EQ(fixture.rx_count, 0);
    EXPECT_EQ(counter(&fixture, "unclaimed_writes"), 1);
    fixture_fini(&fixture);
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
    struct fixture fixture;
    fixture_init(&fixture);
    EXPECT_TRUE(pcie_end_offer(fixture.host.end, pcie_tlp_read(fixture.pool, 0, 3, BAR0 - 8, 8)));
    (void)sim_run(fixture.sim);
    EXPECT_EQ(fixture.rx_count, 0);
    EXPECT_EQ(counter(&fixture, "unclaimed_reads"), 1);
    EXPECT_EQ(fixture.host.received, 1);
    EXPECT_EQ(fixture.host.last_kind, PCIE_TLP_CPL);
    EXPECT_EQ(fixture.host.last_status, PCIE_CPL_UR);
    fixture_fini(&fixture);
}

// Two header credits for posted writes and two for reads are enough for any number of both.
TEST(Board, ReturnsTheCreditsOfWhatHitsNoBar)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < 8; i++) {
        host_write(&fixture, BAR0 - 8);
        EXPECT_TRUE(pcie_end_offer(fixture.host.end, pcie_tlp_read(fixture.pool, 0, 3, BAR0 - 8, 8)));
        (void)sim_run(fixture.sim);
    }
    EXPECT_EQ(counter(&fixture, "unclaimed_writes"), 8);
    EXPECT_EQ(counter(&fixture, "unclaimed_reads"), 8);
    host_write(&fixture, BAR0);
    EXPECT_EQ(fixture.rx_count, 1);
    fixture_fini(&fixture);
}

TEST(Board, TakesAnyAddressFromACable)
{
    struct fixture fixture;
    fixture_init(&fixture);
    EXPECT_TRUE(pcie_end_offer(fixture.neighbour.end, write_of(&fixture, 0x1000)));
    (void)sim_run(fixture.sim);
    EXPECT_EQ(fixture.rx_count, 1);
    EXPECT_EQ(fixture.last_port, PEACH2_PORT_E);
    fixture_fini(&fixture);
}

// --- back-pressure -------------------------------------------------------------------------------------------------

TEST(Board, StallsTheSenderWhileTheChipTakesNothing)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.lazy = true;
    for (unsigned i = 0; i < 4; i++) {
        host_write(&fixture, WINDOW + 64 * i);
    }
    EXPECT_EQ(fixture.rx_count, 2); // the number of header credits
    fixture.lazy = false;
    for (unsigned i = 0; i < 2; i++) {
        peach2_board_rx_taken(fixture.board, PEACH2_PORT_N, fixture.kept[i]);
    }
    (void)sim_run(fixture.sim);
    EXPECT_EQ(fixture.rx_count, 4);
    fixture_fini(&fixture);
}

TEST(Board, StallsTheChipWhileTheLinkHasNoRoomAndLosesNothing)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.neighbour.deaf = true;
    unsigned sent = 0;
    for (; sent < HELD_MAX && fixture.ready[PEACH2_PORT_E]; sent++) {
        peach2_board_tx(fixture.board, PEACH2_PORT_E, write_of(&fixture, WINDOW + 64 * sent));
        (void)sim_run(fixture.sim);
    }
    // A packet whose first beats were taken is still finished.
    peach2_board_tx(fixture.board, PEACH2_PORT_E, write_of(&fixture, WINDOW + 64 * sent++));
    EXPECT_FALSE(fixture.ready[PEACH2_PORT_E]);
    EXPECT_TRUE(fixture.ready[PEACH2_PORT_N]);
    EXPECT_EQ(counter(&fixture, "transmit_stalls"), 1);
    far_hear(&fixture.neighbour);
    (void)sim_run(fixture.sim);
    EXPECT_TRUE(fixture.ready[PEACH2_PORT_E]);
    EXPECT_EQ(fixture.neighbour.received, sent);
    EXPECT_EQ(fixture.neighbour.last_address, WINDOW + 64 * (sent - 1));
    fixture_fini(&fixture);
}

TEST(Board, DropsAndCountsWhatGoesToAPortWithoutACable)
{
    struct fixture fixture;
    fixture_init(&fixture);
    peach2_board_tx(fixture.board, PEACH2_PORT_S, write_of(&fixture, WINDOW));
    EXPECT_EQ(counter(&fixture, "unconnected_tlps"), 1);
    EXPECT_TRUE(fixture.ready[PEACH2_PORT_S]);
    fixture_fini(&fixture);
}

TEST(Board, CountsWhatALinkLosesWhenItGoesDownAndLetsTheChipGoOn)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.neighbour.deaf = true;
    for (unsigned i = 0; i < HELD_MAX && fixture.ready[PEACH2_PORT_E]; i++) {
        peach2_board_tx(fixture.board, PEACH2_PORT_E, write_of(&fixture, WINDOW));
        (void)sim_run(fixture.sim);
    }
    pcie_link_set_down(fixture.cable);
    (void)sim_run(fixture.sim);
    EXPECT_TRUE(fixture.ready[PEACH2_PORT_E]);
    EXPECT_GT(counter(&fixture, "lost_tlps"), 0);
    far_hear(&fixture.neighbour);
    fixture_fini(&fixture);
}

// The neighbour takes what its receive buffer holds; what waits behind it is lost.
static void outage(struct fixture *fixture)
{
    fixture->neighbour.deaf = true;
    for (unsigned i = 0; i < HELD_MAX && fixture->ready[PEACH2_PORT_E]; i++) {
        peach2_board_tx(fixture->board, PEACH2_PORT_E, write_of(fixture, WINDOW));
        (void)sim_run(fixture->sim);
    }
    pcie_link_set_down(fixture->cable);
    (void)sim_run(fixture->sim);
    far_hear(&fixture->neighbour);
    pcie_link_set_up(fixture->cable);
    (void)sim_run(fixture->sim);
}

TEST(Board, AddsUpWhatIsLostInEachOutage)
{
    struct fixture fixture;
    fixture_init(&fixture);
    outage(&fixture);
    uint64_t lost = counter(&fixture, "lost_tlps");
    EXPECT_GT(lost, 0);
    outage(&fixture); // the same again
    EXPECT_EQ(counter(&fixture, "lost_tlps"), 2 * lost);
    fixture_fini(&fixture);
}

TEST(Board, ResetsItsChipWhenItsLinksAreDown)
{
    struct fixture fixture;
    fixture_init(&fixture);
    pcie_link_set_down(fixture.cable);
    pcie_link_set_down(fixture.slot);
    peach2_board_reset(fixture.board);
    EXPECT_EQ(fixture.resets, 1);
    EXPECT_EQ(counter(&fixture, "resets"), 1);
    fixture_fini(&fixture);
}

static void chip_send_256(void *ctx)
{
    struct fixture *fixture = ctx;
    peach2_board_tx(fixture->board, PEACH2_PORT_E, pcie_tlp_write(fixture->pool, 0, 4096, 256, NULL));
}

TEST(Board, BeginsToTransmitWithTheFirstBeatOfAPacket)
{
    struct fixture fixture;
    fixture_init(&fixture);
    sim_event_t last_beat;
    sim_event_init(&last_beat, chip_send_256, &fixture);
    sim_event_schedule_at(fixture.sim, &last_beat, 1000 * NS);

    (void)sim_run(fixture.sim);

    // 16 beats of payload after the header: begun 64 ns before the last one; 280 bytes take 70 ns on Gen2 x8
    EXPECT_EQ(fixture.neighbour.last_ps, (1000 - 64) * NS + TX_PS + 70 * NS);
    fixture_fini(&fixture);
}

static void chip_send_unaligned(void *ctx)
{
    struct fixture *fixture = ctx;
    peach2_board_tx(fixture->board, PEACH2_PORT_E, pcie_tlp_write(fixture->pool, 0, 4096 + 12, 8, "12345678"));
}

TEST(Board, CountsTheEmptyLanesOfTheFirstBeatOfAPacket)
{
    struct fixture fixture;
    fixture_init(&fixture);
    sim_event_t last_beat;
    sim_event_init(&last_beat, chip_send_unaligned, &fixture);
    sim_event_schedule_at(fixture.sim, &last_beat, 1000 * NS);

    (void)sim_run(fixture.sim);

    // 4 bytes in each of two beats of payload after the header: begun 8 ns before the last one; 32 bytes take 8 ns
    EXPECT_EQ(fixture.neighbour.last_ps, (1000 - 8) * NS + TX_PS + 8 * NS);
    fixture_fini(&fixture);
}
