#include "models/pcie/wire.h"
#include "pair.h"
#include "tests/shim/test.h"

TEST(Wire, TakesTheTimeOfItsGenerationAndWidth)
{
    // 1040 bytes: 2.5, 5 and 8 GT/s with 8b/10b, 8b/10b and 128b/130b.
    static const struct {
        uint32_t generation, lanes;
        uint64_t ps;
    } ROWS[] = {
        {1, 1, 4160000}, {1, 2, 2080000}, {1, 4, 1040000}, {1, 8, 520000}, {1, 16, 260000},
        {2, 1, 2080000}, {2, 2, 1040000}, {2, 4, 520000},  {2, 8, 260000}, {2, 16, 130000},
        {3, 1, 1056250}, {3, 2, 528125},  {3, 4, 264063},  {3, 8, 132032}, {3, 16, 66016},
    };
    for (unsigned i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        EXPECT_EQ(pcie_wire_ps(ROWS[i].generation, ROWS[i].lanes, 1040), ROWS[i].ps);
    }
    EXPECT_EQ(pcie_wire_ps(2, 8, 1), 250);
    EXPECT_EQ(pcie_wire_ps(3, 8, 64), 8125);
}

TEST(Wire, UsesTheIntervalsOfTheSpecification)
{
    // Rows of docs/component-facts.md.
    EXPECT_EQ(pcie_ack_interval_symbols(1, 8, 128), 67);
    EXPECT_EQ(pcie_ack_interval_symbols(1, 8, 256), 107);
    EXPECT_EQ(pcie_ack_interval_symbols(2, 8, 128), 118);
    EXPECT_EQ(pcie_ack_interval_symbols(2, 8, 256), 158);
    EXPECT_EQ(pcie_ack_interval_symbols(3, 8, 128), 163);
    EXPECT_EQ(pcie_ack_interval_symbols(3, 8, 256), 203);
    EXPECT_EQ(pcie_ack_interval_symbols(1, 1, 4096), 4143);
    EXPECT_EQ(pcie_ack_interval_symbols(2, 16, 512), 137);
    EXPECT_EQ(pcie_ack_interval_symbols(3, 4, 2048), 634);
}

TEST(Wire, UsesTheIntervalsOfTheFormulaForEveryGenerationWidthAndPayload)
{
    // Clauses 2.6.1.2 and 3.5.3.1: (Max_Payload_Size + 28) x factor / lanes + internal delay, in symbol times. The factors
    // of 128 B and 256 B, and of all larger payloads, in tenths, by width.
    static const uint32_t DELAYS[] = {19, 70, 115}, SMALL[] = {14, 14, 14, 25, 30}, LARGE[] = {10, 10, 10, 10, 20};
    for (uint32_t generation = 1; generation <= sizeof DELAYS / sizeof DELAYS[0]; generation++) {
        for (unsigned width = 0; width < 5; width++) {
            for (uint32_t mps_bytes = 128; mps_bytes <= 4096; mps_bytes *= 2) {
                TEST_TRACE("generation %u, %u lanes, %u bytes", generation, 1u << width, mps_bytes);
                uint32_t factor = mps_bytes <= 256 ? SMALL[width] : LARGE[width];
                EXPECT_EQ(pcie_ack_interval_symbols(generation, 1u << width, mps_bytes),
                          (mps_bytes + 28) * factor / 10 / (1u << width) + DELAYS[generation - 1]);
            }
        }
    }
}

TEST(Wire, AccumulatesNoRounding)
{
    struct pcie_wire wire;
    pcie_wire_init(&wire, 3, 16, 0);
    uint64_t sent_ps = 0;
    // A byte is 8125/128 ps; before the first SKP ordered set at 1538 symbols of 1015.625 ps.
    for (unsigned i = 0; i < 1280; i++) {
        sent_ps = pcie_wire_send(&wire, sent_ps, 1);
    }
    EXPECT_EQ(sent_ps, 81250);
}

TEST(Wire, LosesFourOf1538SymbolTimesToSkpOrderedSets)
{
    struct pcie_wire wire;
    pcie_wire_init(&wire, 2, 8, 0);
    uint64_t sent_ps = 0;
    for (unsigned i = 0; i < 10000; i++) {
        sent_ps = pcie_wire_send(&wire, sent_ps, 280);
    }
    // 700 us of packets take 700 x 1538 / 1534 us, give or take one ordered set of 8 ns.
    EXPECT_BETWEEN(sent_ps, 701825293 - 8000, 701825293 + 8000);
}

TEST(Wire, SkipsOrderedSetsThatFellIntoIdleTime)
{
    struct pcie_wire wire;
    pcie_wire_init(&wire, 2, 8, 0);
    // The third set is due at 3 x 1538 x 2 ns = 9228 ns and takes 8 ns.
    EXPECT_EQ(pcie_wire_send(&wire, 9220000, 8), 9222000);
    EXPECT_EQ(pcie_wire_send(&wire, 9230000, 8), 9238000);
    EXPECT_EQ(pcie_wire_send(&wire, 9300000, 8), 9302000);
}

TEST(Link, DeliversAWriteAfterPipelineWireFlightAndReceiver)
{
    struct pcie_link_config config = pair_config();
    config.flight_ps = 5000;
    config.ends[0].tx_ps = 100000;
    config.ends[1].rx_ps = 60000;
    struct pair *pair = pair_create(&config);

    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);

    EXPECT_EQ(pair->owners[1].received, 1);
    EXPECT_EQ(pair->owners[1].last_ps, 100000 + 280 * 250 + 5000 + 60000);
    pair_destroy(pair);
}

TEST(Link, SendsBackToBackWhatWasOfferedDuringThePipelineLatency)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_ps = 500000;
    struct pair *pair = pair_create(&config);

    for (unsigned i = 0; i < 4; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);

    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(pair->owners[1].log[i].time_ps, 500000 + (i + 1) * 70000);
    }
    pair_destroy(pair);
}

TEST(Link, RefusesWhatFitsNoQueueAndTellsWhenThereIsRoom)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_queue_tlps = 2;
    struct pair *pair = pair_create(&config);

    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_FALSE(pcie_end_has_room(pair->owners[0].end, PCIE_POSTED));
    EXPECT_FALSE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_EQ(pair->owners[0].readies, 0);
    EXPECT_TRUE(pair_offer(pair, 0, PCIE_TLP_MRD, 1, 4));
    (void)sim_run(pair->sim);

    EXPECT_EQ(pair->owners[0].readies, 1);
    EXPECT_EQ(pair->owners[1].received, 3);
    pair_destroy(pair);
}

TEST(Link, TellsWhenFewerThanFourSlotsForWritesAreFreeAndWhenFourAreAgain)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_queue_tlps = 8;
    struct pair *pair = pair_create(&config);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
        EXPECT_TRUE(pair_offer(pair, 0, PCIE_TLP_MRD, (uint8_t)i, 4)); // has a queue of its own
    }
    EXPECT_EQ(pair->owners[0].rooms, 0);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_EQ(pair->owners[0].rooms, 1);
    EXPECT_FALSE(pair->owners[0].has_room);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[0].rooms, 2);
    EXPECT_TRUE(pair->owners[0].has_room);
    pair_destroy(pair);
}

TEST(Link, RefusesImpossibleConfigurations)
{
    struct pair *pair = NULL;
    struct pcie_link_config good = pair_config();
    struct pcie_link_config bad[6];
    pcie_link_t *link = NULL;
    for (unsigned i = 0; i < 6; i++) {
        bad[i] = good;
    }
    bad[0].generation = 0;
    bad[1].lanes = 3;
    bad[2].mps_bytes = 200;
    bad[3].ends[1].headers[PCIE_NONPOSTED] = 0;
    bad[4].ends[0].data[PCIE_POSTED] = 15;
    bad[5].ends[0].tx_queue_tlps = 0;
    pair = pair_create(&good);
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_EQ(pcie_link_create(pair->sim, pair->pool, "bad", &bad[i], &link), SIM_ERR_INVALID);
    }
    pair_destroy(pair);
}

// Positions count from an origin that moves with time: a wire that was idle or busy for long behaves like a new one.
TEST(Wire, GoesOnAfterDaysAsAtTheBeginning)
{
    static const uint64_t days_ps = UINT64_C(3) * 24 * 3600 * 1000 * SIM_PS_PER_MS;
    const uint64_t interval_ps = 1538 * 2000; // of SKP ordered sets at Gen2, 3.076 us
    for (uint64_t phase_ps = 0; phase_ps < interval_ps; phase_ps += 70000) {
        struct pcie_wire fresh, old;
        uint64_t then_ps = days_ps / interval_ps * interval_ps + phase_ps, sent_ps = then_ps, fresh_ps = phase_ps;
        pcie_wire_init(&fresh, 2, 8, 0);
        pcie_wire_init(&old, 2, 8, 0);
        EXPECT_EQ(pcie_wire_send(&old, 1000, 280), 71000);
        for (unsigned i = 0; i < 100; i++) {
            sent_ps = pcie_wire_send(&old, sent_ps, 280);
            fresh_ps = pcie_wire_send(&fresh, fresh_ps, 280);
            if (then_ps > interval_ps && phase_ps > 40000) { // the first interval has no ordered set at its start
                EXPECT_EQ(sent_ps - then_ps, fresh_ps - phase_ps);
            }
        }
        EXPECT_EQ(pcie_wire_free_ps(&old), sent_ps);
    }
}
