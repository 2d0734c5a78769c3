// Saturated links compared with the limits of the specification, derived in docs/decisions/0003-link-ceilings.md.
#include "pair.h"
#include "tests/shim/test.h"

enum { TLPS = 20000 };

struct ceiling {
    uint32_t generation, lanes, mps_bytes;
    uint64_t one_way_mbps, both_ways_mbps; // 10^6 bytes of payload per second and direction
};

// raw x MPS / (MPS + 24) x (1 - 4/1538); both ways also minus 16 B of DLLPs in each interval x lanes bytes.
static const struct ceiling CEILINGS[] = {
    {1, 8, 128, 1680, 1630}, {1, 8, 256, 1824, 1790}, {2, 1, 256, 456, 440},      {2, 4, 256, 1824, 1781},
    {2, 8, 128, 3360, 3303}, {2, 8, 256, 3648, 3601}, {2, 8, 512, 3811, 3755},    {2, 16, 256, 7295, 7236},
    {3, 8, 128, 6616, 6535}, {3, 8, 256, 7183, 7112}, {3, 16, 256, 14366, 14280}, {3, 16, 4096, 15621, 15596},
};

static uint64_t owner_mbps(const struct pair_owner *owner, uint32_t bytes)
{
    return (owner->received - 1) * bytes * 1000000 / (owner->last_ps - owner->first_ps);
}

static struct pcie_link_config ceiling_config(const struct ceiling *ceiling)
{
    struct pcie_link_config config = pair_config();
    config.generation = ceiling->generation;
    config.lanes = ceiling->lanes;
    config.mps_bytes = ceiling->mps_bytes;
    config.flight_ps = 5000;
    for (unsigned side = 0; side < 2; side++) {
        config.ends[side].tx_ps = 60000;
        config.ends[side].rx_ps = 60000;
        pair_set_credits(&config, side, PCIE_POSTED, 128, 2048);
    }
    return config;
}

TEST(Throughput, ReachesTheCeilingOneWay)
{
    for (unsigned i = 0; i < sizeof CEILINGS / sizeof CEILINGS[0]; i++) {
        const struct ceiling *ceiling = &CEILINGS[i];
        const struct pcie_link_config config = ceiling_config(ceiling);
        struct pair *pair = pair_create(&config);
        pair_saturate(pair, 0, TLPS, ceiling->mps_bytes);
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        EXPECT_EQ(pair->owners[1].received, TLPS);
        uint64_t mbps = owner_mbps(&pair->owners[1], ceiling->mps_bytes);
        EXPECT_BETWEEN(mbps, ceiling->one_way_mbps * 99 / 100, ceiling->one_way_mbps * 101 / 100);
        pair_destroy(pair);
    }
}

TEST(Throughput, ReachesTheCeilingBothWays)
{
    for (unsigned i = 0; i < sizeof CEILINGS / sizeof CEILINGS[0]; i++) {
        const struct ceiling *ceiling = &CEILINGS[i];
        const struct pcie_link_config config = ceiling_config(ceiling);
        struct pair *pair = pair_create(&config);
        pair_saturate(pair, 0, TLPS, ceiling->mps_bytes);
        pair_saturate(pair, 1, TLPS, ceiling->mps_bytes);
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        for (unsigned side = 0; side < 2; side++) {
            uint64_t mbps = owner_mbps(&pair->owners[side], ceiling->mps_bytes);
            EXPECT_BETWEEN(mbps, ceiling->both_ways_mbps * 99 / 100, ceiling->both_ways_mbps * 101 / 100);
        }
        pair_destroy(pair);
    }
}

TEST(Throughput, CostsAtMostThreeEventsForEachTlp)
{
    const struct pcie_link_config config = ceiling_config(&CEILINGS[5]);
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, TLPS, 256);
    (void)sim_run(pair->sim);
    EXPECT_BETWEEN(sim_events_run(pair->sim), 2 * TLPS, 3 * TLPS);
    pair_destroy(pair);
}

TEST(Throughput, IsLostWhenTheBufferCoversLessThanTheWayOfItsCredits)
{
    struct pcie_link_config config = ceiling_config(&CEILINGS[5]);
    pair_set_credits(&config, 1, PCIE_POSTED, 128, 16);
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, 1000, 256);
    (void)sim_run(pair->sim);
    // One write at a time: 70 ns on the wire, 5 of flight, 60 in the receiver, 2 + 5 for the UpdateFC: 142 ns.
    EXPECT_BETWEEN(owner_mbps(&pair->owners[1], 256), 256 * 1000 / 142 - 5, 256 * 1000 / 142 + 5);
    pair_destroy(pair);
}
