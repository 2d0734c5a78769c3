// The packet buffer in DDR3 memory, with a chip and links that only record what they get.
#include "models/peach2/ddr3.h"

#include <string.h>

#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

enum { PACKETS_MAX = 64, EMBEDDED = 4 };

#define NS        1000ull
#define ACCESS_PS (38 * NS + 32 * NS) // of a packet of 256 B: 272 B at 8.5 GB/s, and the turn

struct fixture {
    sim_t *sim;
    pcie_pool_t *pool;
    peach2_ddr3_t *ddr3;
    pcie_tlp_t *inside[PACKETS_MAX]; // the chip's, in the order of their coming
    uint64_t address[PACKETS_MAX], given_ps[PACKETS_MAX];
    unsigned given, taken, released;
    sim_event_t stop;
};

static void chip_take_in(struct fixture *fixture, pcie_tlp_t *tlp)
{
    fixture->address[fixture->given] = tlp->address;
    fixture->given_ps[fixture->given] = sim_now_ps(fixture->sim);
    fixture->inside[fixture->given++] = tlp;
}

static void deliver(void *ctx, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    (void)port;
    EXPECT_EQ(bar, 2);
    chip_take_in(ctx, tlp);
}

static void release(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    (void)port;
    (void)tlp;
    ((struct fixture *)ctx)->released++;
}

static const struct peach2_ddr3_ops ops = {.deliver = deliver, .release = release};

static void fixture_init(struct fixture *fixture)
{
    const struct sim_config config = {.seed = 1};
    const struct peach2_ddr3_config memory = {.embedded_tlps = EMBEDDED, .bytes_per_us = 8500, .turn_ps = 38 * NS};
    memset(fixture, 0, sizeof *fixture);
    ASSERT_EQ(sim_create(&config, &fixture->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&fixture->pool), SIM_OK);
    sim_event_init(&fixture->stop, (sim_event_fn)sim_stop, fixture->sim);
    ASSERT_EQ(peach2_ddr3_create(fixture->sim, "board", &memory, &ops, fixture, &fixture->ddr3), SIM_OK);
}

static void fixture_fini(struct fixture *fixture)
{
    for (unsigned i = fixture->taken; i < fixture->given; i++) {
        pcie_tlp_unref(fixture->inside[i]);
    }
    peach2_ddr3_destroy(fixture->ddr3);
    EXPECT_EQ(pcie_pool_destroy(fixture->pool), 0);
    sim_destroy(fixture->sim);
}

static void arrive(struct fixture *fixture, unsigned port, uint64_t address)
{
    pcie_tlp_t *tlp = pcie_tlp_write(fixture->pool, 0, address, 256, NULL);
    memset(pcie_tlp_data(tlp), 0, 256);
    if (!peach2_ddr3_keeps(fixture->ddr3, port, 2, tlp)) {
        chip_take_in(fixture, tlp);
    }
}

// true: the packet came out of the memory.
static bool take_at(struct fixture *fixture, unsigned port, uint64_t taken_ps)
{
    pcie_tlp_unref(fixture->inside[fixture->taken++]);
    return peach2_ddr3_taken(fixture->ddr3, port, taken_ps);
}

static void run_for(struct fixture *fixture, uint64_t ps)
{
    sim_event_schedule(fixture->sim, &fixture->stop, ps);
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_STOPPED);
}

static void expect_order(const struct fixture *fixture, unsigned count)
{
    EXPECT_EQ(fixture->given, count);
    for (unsigned i = 0; i < fixture->given; i++) {
        EXPECT_EQ(fixture->address[i], 256ull * i);
    }
}

TEST(Ddr3, IsNotUsedWhileTheChipTakesItsPackets)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < 40; i++) {
        arrive(&fixture, PEACH2_PORT_E, 256ull * i);
        if (i >= EMBEDDED - 1) {
            EXPECT_FALSE(take_at(&fixture, PEACH2_PORT_E, sim_now_ps(fixture.sim)));
        }
    }
    expect_order(&fixture, 40);
    EXPECT_EQ(fixture.released, 0);
    fixture_fini(&fixture);
}

TEST(Ddr3, KeepsWhatFindsTheEmbeddedMemoryFullAndAllBehindIt)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < EMBEDDED + 2; i++) {
        arrive(&fixture, PEACH2_PORT_W, 256ull * i);
    }
    EXPECT_EQ(fixture.given, EMBEDDED);
    run_for(&fixture, 2 * ACCESS_PS - 1);
    EXPECT_EQ(fixture.released, 1); // its credits return when it is written
    run_for(&fixture, 1);
    EXPECT_EQ(fixture.released, 2);
    while (fixture.taken < EMBEDDED) {
        EXPECT_FALSE(take_at(&fixture, PEACH2_PORT_W, sim_now_ps(fixture.sim)));
    }
    arrive(&fixture, PEACH2_PORT_W, 256ull * (EMBEDDED + 2)); // the chip has none, but two are before it
    EXPECT_EQ(fixture.given, EMBEDDED);
    run_for(&fixture, 10 * ACCESS_PS);
    EXPECT_EQ(fixture.given, EMBEDDED + 2); // the chip gets two ahead
    EXPECT_TRUE(take_at(&fixture, PEACH2_PORT_W, sim_now_ps(fixture.sim)));
    run_for(&fixture, ACCESS_PS);
    expect_order(&fixture, EMBEDDED + 3);
    EXPECT_EQ(fixture.released, 3);
    fixture_fini(&fixture);
}

TEST(Ddr3, WaitsForATakingThatIsKnownInAdvance)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < EMBEDDED + 1; i++) {
        arrive(&fixture, PEACH2_PORT_S, 256ull * i);
    }
    for (unsigned i = 0; i < EMBEDDED; i++) {
        (void)take_at(&fixture, PEACH2_PORT_S, 1000 * NS + i * 100 * NS);
    }
    run_for(&fixture, 3000 * NS);
    expect_order(&fixture, EMBEDDED + 1);
    EXPECT_EQ(fixture.given_ps[EMBEDDED], 1200 * NS + ACCESS_PS); // one left inside, of at most two
    fixture_fini(&fixture);
}

static uint64_t last_of_ports_ps(unsigned ports)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < ports * (EMBEDDED + 2); i++) {
        arrive(&fixture, PEACH2_PORT_E + i % ports, 4096ull * i);
    }
    for (unsigned i = 0; i < ports * EMBEDDED; i++) {
        (void)take_at(&fixture, PEACH2_PORT_E + i % ports, 0);
    }
    run_for(&fixture, 100 * ACCESS_PS);
    EXPECT_EQ(fixture.given, ports * (EMBEDDED + 2));
    uint64_t ps = fixture.given_ps[fixture.given - 1];
    fixture_fini(&fixture);
    return ps;
}

TEST(Ddr3, IsSharedByAllPorts)
{
    EXPECT_EQ(last_of_ports_ps(1), 4 * ACCESS_PS); // two packets, in and out
    EXPECT_EQ(last_of_ports_ps(2), 8 * ACCESS_PS);
    EXPECT_EQ(last_of_ports_ps(3), 12 * ACCESS_PS);
}

TEST(Ddr3, LeavesTheHostsPacketsAlone)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < 4 * EMBEDDED; i++) {
        arrive(&fixture, PEACH2_PORT_N, 256ull * i);
    }
    expect_order(&fixture, 4 * EMBEDDED);
    fixture_fini(&fixture);
}

TEST(Ddr3, LosesAllInAResetAndGoesOn)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (unsigned i = 0; i < EMBEDDED + 3; i++) {
        arrive(&fixture, PEACH2_PORT_E, 256ull * i);
    }
    run_for(&fixture, ACCESS_PS);
    EXPECT_EQ(fixture.released, 1);
    while (fixture.taken < EMBEDDED) { // the chip loses what it has
        (void)take_at(&fixture, PEACH2_PORT_E, sim_now_ps(fixture.sim) + 1000 * NS);
    }
    peach2_ddr3_reset(fixture.ddr3);
    EXPECT_EQ(fixture.released, 3);
    run_for(&fixture, 5000 * NS);
    EXPECT_EQ(fixture.given, EMBEDDED);
    arrive(&fixture, PEACH2_PORT_E, 256ull * EMBEDDED);
    expect_order(&fixture, EMBEDDED + 1);
    fixture_fini(&fixture);
}

TEST(Ddr3, RefusesWhatItCannotBe)
{
    struct fixture fixture;
    fixture_init(&fixture);
    peach2_ddr3_t *other;
    struct peach2_ddr3_config config = {.embedded_tlps = 33, .bytes_per_us = 1};
    EXPECT_EQ(peach2_ddr3_create(fixture.sim, "other", &config, &ops, &fixture, &other), SIM_ERR_INVALID);
    config.embedded_tlps = 0;
    EXPECT_EQ(peach2_ddr3_create(fixture.sim, "other", &config, &ops, &fixture, &other), SIM_ERR_INVALID);
    config = (struct peach2_ddr3_config){.embedded_tlps = 1};
    EXPECT_EQ(peach2_ddr3_create(fixture.sim, "other", &config, &ops, &fixture, &other), SIM_ERR_INVALID);
    fixture_fini(&fixture);
}
