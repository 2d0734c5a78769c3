// A link that comes up again: it is as a new one, and nothing ends behind a gap.
#include <string.h>

#include "pair.h"
#include "tests/shim/test.h"

#define QUIET_US 20

static void set_down(void *ctx)
{
    pcie_link_set_down(((struct pair *)ctx)->link);
}

static void set_up(void *ctx)
{
    pcie_link_set_up(((struct pair *)ctx)->link);
}

static void offer_one(void *ctx)
{
    EXPECT_TRUE(pair_write(ctx, 0, 0x1000000000, 64));
}

static void at(struct pair *pair, sim_event_t *event, sim_event_fn run, uint64_t at_ps)
{
    sim_event_init(event, run, pair);
    sim_event_schedule_at(pair->sim, event, at_ps);
}

// The time of a stream in both directions from now on.
static uint64_t stream_ps(struct pair *pair)
{
    uint64_t start_ps = sim_now_ps(pair->sim);
    pair_saturate(pair, 0, 200, 256);
    pair_saturate(pair, 1, 200, 64);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    uint64_t last_ps = pair->owners[1].last_ps;
    return (last_ps > pair->owners[0].last_ps ? last_ps : pair->owners[0].last_ps) - start_ps;
}

static struct pcie_link_config small_config(void)
{
    struct pcie_link_config config = pair_config();
    for (unsigned side = 0; side < 2; side++) {
        pair_set_credits(&config, side, PCIE_POSTED, 8, 128);
        config.ends[side].rx_ps = 150000;
    }
    config.flight_ps = 100000;
    return config;
}

// Every TLP of the time before was delivered or dropped, and every one of the time after is delivered at full rate.
TEST(LinkUp, IsAsANewOneWheneverItWentDown)
{
    const struct pcie_link_config config = small_config();
    struct pair *fresh = pair_create(&config);
    uint64_t fresh_ps = stream_ps(fresh);
    pair_destroy(fresh);
    for (uint64_t down_ps = 0; down_ps < 4 * SIM_PS_PER_US; down_ps += 57013) {
        TEST_TRACE("down at %llu ps", (unsigned long long)down_ps);
        struct pair *pair = pair_create(&config);
        sim_event_t down, up;
        at(pair, &down, set_down, down_ps);
        at(pair, &up, set_up, down_ps + SIM_PS_PER_US);
        (void)stream_ps(pair);
        EXPECT_TRUE(pcie_link_is_up(pair->link));
        for (unsigned side = 0; side < 2; side++) {
            EXPECT_EQ(pair->owners[!side].received + pair_counter(pair, side, "tlps_dropped"), 200);
        }
        uint64_t received[2] = {pair->owners[0].received, pair->owners[1].received};
        EXPECT_BETWEEN(stream_ps(pair), fresh_ps, fresh_ps + 64000); // SKP ordered sets come at other times
        for (unsigned side = 0; side < 2; side++) {
            EXPECT_EQ(pair->owners[side].received - received[side], 200);
        }
        pair_destroy(pair);
    }
}

TEST(LinkUp, IsAsANewOneIfTlpsAndAcksWereLostBefore)
{
    struct pcie_link_config config = small_config();
    config.corrupt_every_tlps = 3;
    config.lose_every_acks = 2;
    for (uint64_t down_ps = 0; down_ps < 4 * SIM_PS_PER_US; down_ps += 171013) {
        TEST_TRACE("down at %llu ps", (unsigned long long)down_ps);
        struct pair *pair = pair_create(&config);
        sim_event_t down, up;
        at(pair, &down, set_down, down_ps);
        at(pair, &up, set_up, down_ps);
        (void)stream_ps(pair);
        uint64_t received = pair->owners[1].received;
        (void)stream_ps(pair);
        EXPECT_EQ(pair->owners[1].received - received, 200);
        pair_destroy(pair);
    }
}

TEST(LinkUp, StaysClosedUntilNothingIsOfferedForAWhile)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    sim_event_t down, up, offers[4];
    at(pair, &down, set_down, 0);
    at(pair, &up, set_up, SIM_PS_PER_US);
    for (unsigned i = 0; i < 4; i++) { // the last one comes just in time
        at(pair, &offers[i], offer_one, (i + 1) * (QUIET_US * SIM_PS_PER_US - 1000));
    }
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_EQ(pair->owners[1].received, 0);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_dropped"), 4);
    EXPECT_EQ(pcie_link_up_ps(pair->link), 5 * QUIET_US * SIM_PS_PER_US - 4000);
    EXPECT_EQ(pair_counter(pair, 1, "up_at"), 5 * QUIET_US * SIM_PS_PER_US - 4000);
    offer_one(pair);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_EQ(pair->owners[1].received, 1);
    pair_destroy(pair);
}

// What an owner still holds occupies its buffer, and what it released meanwhile does not.
TEST(LinkUp, CountsWhatTheOwnerHolds)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, PCIE_POSTED, 4, 1024);
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    pair_saturate(pair, 0, 3, 64);
    (void)sim_run(pair->sim);
    pcie_link_set_down(pair->link);
    pair_release_one(&pair->owners[1]);
    pcie_link_set_up(pair->link);
    (void)sim_run(pair->sim);
    pair_saturate(pair, 0, 8, 64);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 3 + 2); // two of four credits
    pair_release_all(&pair->owners[1]);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 3 + 2 + 4);
    pair_destroy(pair);
}

// A write waits for the only header when the link goes down, and is lost. The time of another one counts from its own
// offer.
TEST(LinkUp, WaitsForCreditsAnewAlthoughItWaitedWhenItWentDown)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, PCIE_POSTED, 1, 16);
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 64));
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 64));
    (void)sim_run(pair->sim);
    pcie_link_set_down(pair->link);
    pcie_link_set_up(pair->link);
    (void)sim_run(pair->sim);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 64));
    pair_release_one_at(&pair->owners[1], sim_now_ps(pair->sim) + 300000);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 2);
    EXPECT_EQ(pair_counter(pair, 0, "stall_posted"), 300000 + 2000); // the UpdateFC has 8 B
    pair_destroy(pair);
}

// What an end has accepted, its owner gets, unless the owner was reset.
static uint64_t received_if_reset(bool reset)
{
    struct pcie_link_config config = pair_config();
    config.ends[1].rx_ps = SIM_PS_PER_US;
    struct pair *pair = pair_create(&config);
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, pair->sim);
    sim_event_schedule_at(pair->sim, &stop, SIM_PS_PER_US / 2);
    pair_saturate(pair, 0, 3, 64); // in the receiving pipeline then
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_STOPPED);
    pcie_link_set_down(pair->link);
    if (reset) {
        pcie_end_flush(pair->owners[1].end);
    }
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_sent"), 3);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_lost"), 0);
    EXPECT_EQ(pair_counter(pair, 1, "tlps_flushed"), reset ? 3 : 0);
    uint64_t received = pair->owners[1].received;
    pcie_link_set_up(pair->link);
    (void)sim_run(pair->sim);
    pair_saturate(pair, 0, 200, 256);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, received + 200);
    pair_destroy(pair);
    return received;
}

TEST(LinkUp, ForgetsWhatItHasAcceptedIfTheOwnerWasReset)
{
    EXPECT_EQ(received_if_reset(false), 3);
    EXPECT_EQ(received_if_reset(true), 0);
}

TEST(LinkUp, MayGoDownAgain)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    for (unsigned i = 1; i <= 3; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 64));
        pcie_link_set_down(pair->link);
        EXPECT_EQ(pair_counter(pair, 0, "tlps_lost"), i);
        pcie_link_set_up(pair->link);
        pcie_link_set_up(pair->link);
        (void)sim_run(pair->sim);
        EXPECT_TRUE(pcie_end_is_up(pair->owners[0].end));
    }
    EXPECT_EQ(pair->owners[0].downs, 3);
    EXPECT_EQ(pair->owners[1].received, 0);
    pair_destroy(pair);
}

TEST(LinkUp, RequestsAReplayOfTheFirstTlpAlthoughOneWasRequestedWhenItWentDown)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    sim_event_t down;
    pcie_link_corrupt_next(pair->link, 0);
    at(pair, &down, set_down, 100000); // the write arrives after 70 ns, its replay takes until 142 ns
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 1, "naks"), 1);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_lost"), 1);
    pcie_link_set_up(pair->link);
    (void)sim_run(pair->sim);
    pcie_link_corrupt_next(pair->link, 0);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 1, "naks"), 2);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 0);
    EXPECT_EQ(pair->owners[1].received, 1);
    pair_destroy(pair);
}
