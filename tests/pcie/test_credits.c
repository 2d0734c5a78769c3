#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "tests/shim/test.h"

static struct pair *holding_pair(enum pcie_class class, uint32_t headers, uint32_t data)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, class, headers, data);
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    return pair;
}

TEST(Credits, BlocksPostedWritesWhenHeaderCreditsRunOut)
{
    struct pair *pair = holding_pair(PCIE_POSTED, 4, 1024);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000 + i * 8, 8));
    }
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 4);
    pair_destroy(pair);
}

TEST(Credits, BlocksPostedWritesWhenDataCreditsRunOut)
{
    // 40 credits of 16 B: two writes of 256 B take 32, the third does not fit.
    struct pair *pair = holding_pair(PCIE_POSTED, 128, 40);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 2);
    pair_destroy(pair);
}

TEST(Credits, ResumesWithWhatTheReceiverReleased)
{
    struct pair *pair = holding_pair(PCIE_POSTED, 4, 1024);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000 + i * 8, 8));
    }
    (void)sim_run(pair->sim);
    pair_release_one(&pair->owners[1]);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 5);
    pair_release_all(&pair->owners[1]);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 9);
    EXPECT_EQ(pair->owners[1].log[8].address, 0x1000000040);
    pair_destroy(pair);
}

TEST(Credits, NeverRunOutWhenInfinite)
{
    struct pair *pair = holding_pair(PCIE_COMPLETION, PCIE_CREDITS_INFINITE, PCIE_CREDITS_INFINITE);
    for (unsigned i = 0; i < 32; i++) {
        EXPECT_TRUE(pair_offer(pair, 0, PCIE_TLP_CPLD, (uint8_t)i, 256));
    }
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 32);
    pair_release_all(&pair->owners[1]);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 1, "update_fcs"), 0);
    pair_destroy(pair);
}

TEST(Credits, OfOneClassDoNotBlockTheOthers)
{
    static const struct {
        enum pcie_class blocked;
        enum pcie_tlp_kind blocked_kind, free_kind;
    } ROWS[] = {
        {PCIE_NONPOSTED, PCIE_TLP_MRD, PCIE_TLP_MWR},
        {PCIE_NONPOSTED, PCIE_TLP_MRD, PCIE_TLP_CPLD},
        {PCIE_COMPLETION, PCIE_TLP_CPLD, PCIE_TLP_MWR},
        {PCIE_COMPLETION, PCIE_TLP_CPLD, PCIE_TLP_MRD},
    };
    for (unsigned i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct pair *pair = holding_pair(ROWS[i].blocked, 1, 1024);
        EXPECT_TRUE(pair_offer(pair, 0, ROWS[i].blocked_kind, 0, 4));
        EXPECT_TRUE(pair_offer(pair, 0, ROWS[i].blocked_kind, 1, 4));
        EXPECT_TRUE(pair_offer(pair, 0, ROWS[i].free_kind, 2, 4));
        (void)sim_run(pair->sim);
        EXPECT_EQ(pair->owners[1].received, 2);
        EXPECT_EQ(pair->owners[1].log[1].tag, 2);
        pair_destroy(pair);
    }
}

TEST(Credits, ComeBackAfterTheUpdateIntervalWhenEnoughAreLeft)
{
    struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    // One ACK and one UpdateFC, each 158 symbol times of 2 ns after the write at 70 ns.
    EXPECT_EQ(pair_counter(pair, 1, "update_fcs"), 1);
    EXPECT_EQ(pair_counter(pair, 1, "acks"), 1);
    EXPECT_EQ(pair_counter(pair, 1, "wire_bytes_sent"), 16);
    pair_destroy(pair);
}

TEST(Credits, ComeBackAfterTheUpdateIntervalWhenOneMaximumPayloadIsLeft)
{
    // 80 credits of 16 B: four writes of 256 B leave those for one more. One write is less than a quarter of the buffer.
    struct pair *pair = holding_pair(PCIE_POSTED, 128, 80);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    (void)sim_run(pair->sim);
    pair_release_one(&pair->owners[1]);
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, pair->sim);
    sim_event_schedule(pair->sim, &stop, 315000); // the interval is 158 symbol times of 2 ns
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_STOPPED);
    EXPECT_EQ(pair_counter(pair, 1, "update_fcs"), 0);
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    EXPECT_EQ(pair_counter(pair, 1, "update_fcs"), 1);
    pair_destroy(pair);
}

TEST(Credits, OfOneClassComeBackAfterTheIntervalThoughThoseOfAnotherCameAtOnce)
{
    static const enum pcie_tlp_kind KINDS[] = {PCIE_TLP_MRD, PCIE_TLP_CPLD};
    for (unsigned i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        TEST_TRACE("kind %u", KINDS[i]);
        struct pcie_link_config config = pair_config();
        pair_set_credits(&config, 1, PCIE_POSTED, 1, 16);
        struct pair *pair = pair_create(&config);
        EXPECT_TRUE(pair_offer(pair, 0, KINDS[i], 0, 4));
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256)); // takes the last header
        (void)sim_run(pair->sim);
        EXPECT_EQ(pair_counter(pair, 1, "update_fcs"), 2);
        pair_destroy(pair);
    }
}

TEST(Credits, ComeBackAtOnceWhenLessThanOneMaximumPayloadIsLeft)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, PCIE_POSTED, 8, 16);
    struct pair *pair = pair_create(&config);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    // The second one leaves when an UpdateFC of 8 B has arrived.
    EXPECT_EQ(pair->owners[1].log[1].time_ps, 70000 + 2000 + 70000);
    pair_destroy(pair);
}

TEST(Credits, CountTheTimeAClassWaitedForThem)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, PCIE_POSTED, 1, 16);
    struct pair *pair = pair_create(&config);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 0, "stall_posted"), 72000);
    EXPECT_EQ(pair_counter(pair, 0, "stall_nonposted"), 0);
    pair_destroy(pair);
}

// --- releases announced in advance -----------------------------------------------------------------------------------

struct releases {
    struct pair *pair;
    sim_event_t event;
    unsigned left;
    uint64_t step_ps;
};

static void release_next(void *ctx)
{
    struct releases *releases = ctx;
    pair_release_one(&releases->pair->owners[1]);
    if (--releases->left > 0) {
        sim_event_schedule(releases->pair->sim, &releases->event, releases->step_ps);
    }
}

// Of 24 writes, the receiver takes 16 and releases them one step apart, by events or by announcing it in advance.
static struct pair *released_pair(bool before, uint32_t headers, uint64_t step_ps)
{
    struct pair *pair = holding_pair(PCIE_POSTED, headers, 1024);
    for (unsigned i = 0; i < 24; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    (void)sim_run(pair->sim);
    struct releases releases = {.pair = pair, .left = headers, .step_ps = step_ps};
    sim_event_init(&releases.event, release_next, &releases);
    for (unsigned i = 1; before && i <= headers; i++) {
        pair_release_one_at(&pair->owners[1], sim_now_ps(pair->sim) + i * step_ps);
    }
    if (!before) {
        sim_event_schedule(pair->sim, &releases.event, step_ps);
    }
    (void)sim_run(pair->sim);
    return pair;
}

TEST(Credits, ComeBackAtTheSameTimesWhenTheReleasesAreKnownBefore)
{
    static const uint64_t STEPS_PS[] = {4000, 68000, 316000, 1000000};
    for (unsigned i = 0; i < sizeof STEPS_PS / sizeof STEPS_PS[0]; i++) {
        struct pair *event = released_pair(false, 16, STEPS_PS[i]);
        uint64_t updates = pair_counter(event, 1, "update_fcs"), received = event->owners[1].received;
        struct pair_entry *log = calloc(received, sizeof *log);
        memcpy(log, event->owners[1].log, received * sizeof *log);
        pair_destroy(event);
        struct pair *before = released_pair(true, 16, STEPS_PS[i]);
        EXPECT_EQ(received, 24);
        EXPECT_EQ(before->owners[1].received, received);
        EXPECT_EQ(pair_counter(before, 1, "update_fcs"), updates);
        EXPECT_MEMEQ(before->owners[1].log, log, received * sizeof *log);
        pair_destroy(before);
        free(log);
    }
}

TEST(Credits, OfAReleaseToComeAreNotThereYet)
{
    struct pair *pair = holding_pair(PCIE_POSTED, 4, 1024);
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    }
    (void)sim_run(pair->sim);
    uint64_t at_ps = sim_now_ps(pair->sim) + 5000000;
    pair_release_one_at(&pair->owners[1], at_ps);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 5);
    EXPECT_EQ(pair->owners[1].log[4].time_ps, at_ps + 2000 + 70000);
    pair_destroy(pair);
}

TEST(Credits, AreNotMissedByATlpThatIsStillInThePipeline)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_ps = 500000;
    pair_set_credits(&config, 1, PCIE_POSTED, 1, 16);
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    (void)sim_run(pair->sim);
    EXPECT_TRUE(pair_write(pair, 0, 0x1000000000, 256));
    pair_release_one_at(&pair->owners[1], sim_now_ps(pair->sim) + 800000);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 2);
    // It is through the pipeline after 500 ns, and the UpdateFC of 8 B arrives 2 ns after the release.
    EXPECT_EQ(pair_counter(pair, 0, "stall_posted"), 800000 - 500000 + 2000);
    pair_destroy(pair);
}
