#include <string.h>

#include "pair.h"
#include "sim/kernel/trace.h"
#include "tests/shim/test.h"

static void set_down(void *ctx)
{
    pcie_link_set_down(((struct pair *)ctx)->link);
}

TEST(LinkDown, LosesAndCountsWhatIsQueued)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    pcie_link_set_down(pair->link);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_FALSE(pcie_link_is_up(pair->link));
    EXPECT_FALSE(pcie_end_is_up(pair->owners[1].end));
    EXPECT_EQ(pair->owners[1].received, 0);
    EXPECT_EQ(pair->owners[0].downs, 1);
    EXPECT_EQ(pair->owners[1].downs, 1);
    EXPECT_EQ(pair->owners[0].lost_tlps, 5);
    EXPECT_EQ(pair->owners[1].lost_tlps, 0);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_dropped"), 5);
    pair_destroy(pair);
}

TEST(LinkDown, AccountsForEveryTlpWheneverItHappens)
{
    for (uint64_t at_ps = 0; at_ps < 4 * SIM_PS_PER_US; at_ps += 37717) {
        struct pcie_link_config config = pair_config();
        config.flight_ps = 100000;
        config.ends[1].rx_ps = 100000;
        config.corrupt_every_tlps = 5;
        struct pair *pair = pair_create(&config);
        sim_event_t event;
        sim_event_init(&event, set_down, pair);
        sim_event_schedule(pair->sim, &event, at_ps);
        pair_saturate(pair, 0, 100, 256);
        pair_saturate(pair, 1, 100, 64);
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        for (unsigned side = 0; side < 2; side++) {
            // Refused owners were notified and lost the rest.
            EXPECT_EQ(pair->owners[side].to_send, 0);
            EXPECT_EQ(pair->owners[!side].received + pair_counter(pair, side, "tlps_dropped"), 100);
        }
        pair_destroy(pair);
    }
}

// Every TLP has an ACK of its own, long before its owner gets it.
TEST(LinkDown, LosesNothingThatWasAcknowledged)
{
    for (uint64_t at_ps = 0; at_ps < 9 * SIM_PS_PER_US; at_ps += 97003) {
        struct pcie_link_config config = pair_config();
        config.flight_ps = 15000;
        config.ends[1].rx_ps = SIM_PS_PER_US;
        config.ack_every_tlps = 1;
        struct pair *pair = pair_create(&config);
        sim_event_t event;
        sim_event_init(&event, set_down, pair);
        sim_event_schedule(pair->sim, &event, at_ps);
        pair_saturate(pair, 0, 100, 256);
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        EXPECT_GE(pair->owners[1].received, pair_counter(pair, 1, "acks"));
        EXPECT_EQ(pair->owners[1].received + pair_counter(pair, 0, "tlps_dropped"), 100);
        pair_destroy(pair);
    }
}

TEST(LinkDown, DeliversWhatHadJustArrivedAtEitherEnd)
{
    for (unsigned side = 0; side < 2; side++) {
        TEST_TRACE("from side %u", side);
        struct pcie_link_config config = pair_config();
        config.ends[!side].rx_ps = SIM_PS_PER_US;
        struct pair *pair = pair_create(&config);
        sim_event_t event;
        sim_event_init(&event, set_down, pair);
        sim_event_schedule(pair->sim, &event, 71000); // 280 bytes on Gen2 x8 arrive after 70 ns
        EXPECT_TRUE(pair_write(pair, side, 0x1000000000, 256));
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        EXPECT_EQ(pair->owners[!side].received, 1);
        EXPECT_EQ(pair->owners[side].lost_tlps, 0);
        pair_destroy(pair);
    }
}

TEST(LinkDown, DeliversWhatHadArrivedAtItsTime)
{
    struct pcie_link_config config = pair_config();
    config.ends[1].rx_ps = SIM_PS_PER_US;
    struct pair *pair = pair_create(&config);
    sim_event_t event;
    sim_event_init(&event, set_down, pair);
    sim_event_schedule(pair->sim, &event, SIM_PS_PER_US / 2);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_EQ(pair->owners[1].received, 1);
    EXPECT_EQ(pair->owners[1].last_ps, SIM_PS_PER_US + 70000); // 280 bytes on Gen2 x8
    EXPECT_EQ(pair->owners[0].lost_tlps, 0);
    EXPECT_EQ(pcie_link_down_ps(pair->link), SIM_PS_PER_US / 2);
    EXPECT_EQ(pair_counter(pair, 0, "down_at"), SIM_PS_PER_US / 2);
    EXPECT_EQ(pair_counter(pair, 1, "down_at"), SIM_PS_PER_US / 2);
    pair_destroy(pair);
}

TEST(LinkDown, ComesAfterSoManyTlps)
{
    for (unsigned count = 0; count < 40; count++) {
        const struct pcie_link_config config = pair_config();
        struct pair *pair = pair_create(&config);
        EXPECT_EQ(pcie_link_down_ps(pair->link), SIM_NEVER_PS);
        pcie_link_set_down_after(pair->link, count);
        pair_saturate(pair, 0, 100, 256);
        EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
        EXPECT_FALSE(pcie_link_is_up(pair->link));
        EXPECT_EQ(pair_counter(pair, 0, "tlps_sent"), count);
        EXPECT_EQ(pair_counter(pair, 0, "tlps_lost") + pair->owners[1].received, count == 0 ? 0 : count + 32);
        pair_destroy(pair);
    }
}

TEST(LinkDown, CountsTheTlpsOfBothDirections)
{
    struct pcie_link_config config = pair_config();
    config.corrupt_every_tlps = 3; // replays do not count
    struct pair *pair = pair_create(&config);
    pcie_link_set_down_after(pair->link, 50);
    pair_saturate(pair, 0, 100, 256);
    pair_saturate(pair, 1, 100, 256);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    uint64_t sent = pair_counter(pair, 0, "tlps_sent") + pair_counter(pair, 1, "tlps_sent");
    EXPECT_BETWEEN(sent, 50, 51); // the other direction may be in the middle of a TLP
    pair_destroy(pair);
}

TEST(LinkDown, TakesAndDropsLaterOffers)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_set_down(pair->link);
    pair_saturate(pair, 0, 1000, 256);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_TRUE(pcie_end_has_room(pair->owners[0].end, PCIE_POSTED));
    EXPECT_EQ(pair_counter(pair, 0, "tlps_dropped"), 1000);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_sent"), 0);
    pair_destroy(pair);
}

static void trace_note(void *ctx, const struct sim_trace_record *record)
{
    uint64_t *lost_tlps = ctx;
    if (strcmp(record->point->name, "link_down") == 0) {
        lost_tlps[strcmp(record->component, "link.1") == 0] += record->values[0];
    }
}

TEST(LinkDown, IsTraced)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    uint64_t lost_tlps[2] = {100, 100};
    sim_trace_set_sink(pair->sim, trace_note, lost_tlps);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    pcie_link_set_down(pair->link);
    EXPECT_EQ(lost_tlps[0], 101);
    EXPECT_EQ(lost_tlps[1], 100);
    pair_destroy(pair);
}

TEST(LinkDown, HappensOnce)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_set_down(pair->link);
    pcie_link_set_down(pair->link);
    EXPECT_EQ(pair->owners[0].downs, 1);
    pair_destroy(pair);
}

TEST(LinkDown, TellsACrowdedOwnerThatThereIsRoom)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_queue_tlps = PCIE_ROOM_TLPS;
    struct pair *pair = pair_create(&config);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_EQ(pair->owners[0].rooms, 1);
    EXPECT_FALSE(pair->owners[0].has_room);
    pcie_link_set_down(pair->link);
    EXPECT_EQ(pair->owners[0].rooms, 2);
    EXPECT_TRUE(pair->owners[0].has_room);
    pair_destroy(pair);
}

TEST(LinkDown, LetsAnOwnerReleaseWhatItHeld)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    pcie_link_set_down(pair->link);
    pair_release_all(&pair->owners[1]);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_dropped"), 0);
    pair_destroy(pair);
}

TEST(Link, DropsWhatIsInFlightWhenDestroyed)
{
    struct pcie_link_config config = pair_config();
    config.flight_ps = 10 * SIM_PS_PER_US;
    struct pair *pair = pair_create(&config);
    sim_event_t event;
    sim_event_init(&event, (sim_event_fn)sim_stop, pair->sim);
    sim_event_schedule(pair->sim, &event, 200000);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_STOPPED);
    pair_destroy(pair);
}
