// The effects of an adversary on the adapter, one purpose at a time: it delays, and keeps the guarantees.
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { ROUNDS = 100, ALWAYS = 1000, WRITES = 64, FLAG_AT = 65536 };

static uint64_t most_ps(enum adversary_purpose purpose)
{
    return adversary_rules[purpose].most_ps;
}

// --- completions -----------------------------------------------------------------------------------------------------

static unsigned largest_batch;

static void many_writes(void *arg)
{
    struct hca_wc wc[WRITES];
    unsigned seen = 0;
    (void)arg;
    for (uint32_t i = 0; i < WRITES; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, i, 1, fixture.far, i), 0);
    }
    while (seen < WRITES) {
        EXPECT_EQ(hca_cq_wait(fixture.a.cq, 100000000), 0);
        int count = hca_cq_poll(fixture.a.cq, WRITES, wc);
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(wc[i].wr_id, seen++);
        }
        largest_batch = (unsigned)count > largest_batch ? (unsigned)count : largest_batch;
    }
}

TEST(Adversity, LateCompletionsComeTogetherAndInTheirOrder)
{
    fixture_init_adversarial(ADVERSARY_COMPLETION, ALWAYS);
    largest_batch = 0;
    fixture_run(many_writes, NULL);
    EXPECT_GE(largest_batch, 8);
    fixture_fini();
}

static uint64_t longest_ps;

static void single_writes(void *arg)
{
    (void)arg;
    longest_ps = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun_ps = sim_now_ps(fixture.base.sim);
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
        uint64_t took_ps = sim_now_ps(fixture.base.sim) - begun_ps;
        longest_ps = took_ps > longest_ps ? took_ps : longest_ps;
    }
}

static uint64_t longest_under(enum adversary_purpose purpose, uint32_t permille)
{
    fixture_init_adversarial(purpose, permille);
    fixture_run(single_writes, NULL);
    fixture_fini();
    return longest_ps;
}

TEST(Adversity, NothingIsLaterThanItsRuleSays)
{
    static const enum adversary_purpose PURPOSES[] = {ADVERSARY_COMPLETION, ADVERSARY_ACKNOWLEDGE, ADVERSARY_REQUEST,
                                                      ADVERSARY_ARRIVAL};
    uint64_t usual_ps = longest_under(ADVERSARY_COMPLETION, 0);
    for (unsigned i = 0; i < sizeof PURPOSES / sizeof PURPOSES[0]; i++) {
        uint64_t late_ps = longest_under(PURPOSES[i], ALWAYS);
        EXPECT_GT(late_ps, usual_ps + most_ps(PURPOSES[i]) / 2);
        EXPECT_LT(late_ps, usual_ps + most_ps(PURPOSES[i]) + 1 * US);
    }
}

// An operation with several accesses to host memory is delayed several times.
TEST(Adversity, HostMemoryIsLate)
{
    uint64_t usual_ps = longest_under(ADVERSARY_MEMORY_WRITE, 0);
    EXPECT_GT(longest_under(ADVERSARY_MEMORY_WRITE, ALWAYS), usual_ps + most_ps(ADVERSARY_MEMORY_WRITE) / 2);
    EXPECT_GT(longest_under(ADVERSARY_MEMORY_READ, ALWAYS), usual_ps + most_ps(ADVERSARY_MEMORY_READ) / 2);
}

static uint64_t damaged_packets;
enum { LONG_BYTES = 16384, LONG_PACKETS = LONG_BYTES / 2048 };

static void long_write(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, LONG_BYTES, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    longest_ps = sim_now_ps(fixture.base.sim);
    damaged_packets = sim_counter_value(fixture.base.sim, "cable.1", "damaged_packets", NULL);
}

static uint64_t long_under(enum adversary_purpose purpose, uint32_t permille)
{
    fixture_init_adversarial(purpose, permille);
    fixture_run(long_write, NULL);
    EXPECT_MEMEQ(fixture.far->memory, fixture.near->memory, LONG_BYTES);
    fixture_fini();
    return longest_ps;
}

TEST(Adversity, AMessagePausesBetweenItsPacketsNoLongerThanItsRuleSays)
{
    uint64_t usual_ps = long_under(ADVERSARY_GAP, 0), late_ps = long_under(ADVERSARY_GAP, ALWAYS);
    EXPECT_GT(late_ps, usual_ps + 1 * US);
    EXPECT_LT(late_ps, usual_ps + (LONG_PACKETS - 1) * most_ps(ADVERSARY_GAP));
}

// All packets of the message have left when the first one is requested again.
TEST(Adversity, OnePacketAtATimeIsDamaged)
{
    (void)long_under(ADVERSARY_DAMAGE_REQUEST, ALWAYS);
    EXPECT_EQ(damaged_packets, 1);
}

TEST(Adversity, ALateAcknowledgeStandsForManyRequests)
{
    fixture_init_adversarial(ADVERSARY_ACKNOWLEDGE, ALWAYS);
    fixture_run(many_writes, NULL);
    EXPECT_LT(hca_fixture_counter(&fixture.base, 1, "acks_sent"), WRITES / 2);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "retries"), 0);
    fixture_fini();
}

// The queue pair that has seen a message is destroyed before its acknowledge is due.
static void write_and_end(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        struct hca_fixture_qp qp = hca_fixture_qp(fixture.near, HCA_RC), peer = hca_fixture_qp(fixture.far, HCA_RC);
        hca_fixture_connect(&qp, &peer);
        fixture.near->memory[0] = (uint8_t)(i + 1);
        EXPECT_EQ(hca_fixture_send(&qp, HCA_OP_WRITE, 0, 1, fixture.far, FLAG_AT), 0);
        while (fixture.far->memory[FLAG_AT] != i + 1) {
            sim_thread_sleep(fixture.base.sim, 10 * NS);
        }
        hca_fixture_qp_close(&peer);
        EXPECT_EQ(hca_fixture_completion(&qp).status, HCA_OK);
        hca_fixture_qp_close(&qp);
    }
}

TEST(Adversity, TheLastAcknowledgeOfAQueuePairLeavesBeforeItsEnd)
{
    fixture_init_adversarial(ADVERSARY_ACKNOWLEDGE, ALWAYS);
    fixture_run(write_and_end, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "retries"), 0);
    fixture_fini();
}

// --- events ----------------------------------------------------------------------------------------------------------

static unsigned empty;

// Polls as soon as there is a completion; the event is raised once for each arming, and mostly finds the queue empty.
static void poll_before_the_event(void *arg)
{
    struct hca_event event;
    struct hca_wc wc;
    (void)arg;
    empty = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        EXPECT_EQ(hca_cq_arm(fixture.a.cq, false), 0);
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
        bool early = hca_event_get(fixture.near->context, HCA_NO_WAIT, &event) == 0;
        sim_thread_sleep(fixture.base.sim, most_ps(ADVERSARY_EVENT) + 10 * US);
        bool late = hca_event_get(fixture.near->context, HCA_NO_WAIT, &event) == 0;
        EXPECT_EQ(early + late, 1);
        EXPECT_EQ(hca_event_get(fixture.near->context, HCA_NO_WAIT, &event), -EAGAIN);
        empty += late;
        EXPECT_EQ(hca_cq_poll(fixture.a.cq, 1, &wc), 0);
    }
}

TEST(Adversity, AnEventComesOnceAndMayFindItsCompletionTaken)
{
    fixture_init_adversarial(ADVERSARY_EVENT, ALWAYS);
    fixture_run(poll_before_the_event, NULL);
    EXPECT_GT(empty, ROUNDS / 2);
    fixture_fini();
}

// --- timers ----------------------------------------------------------------------------------------------------------

static void late_receive(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 2000 * US);
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 1, 4096, 4096), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.b).status, HCA_OK);
}

static void early_send(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 64, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

static uint64_t refusals_under(uint32_t permille)
{
    fixture_init_adversarial(ADVERSARY_RNR, permille);
    fixture_run(early_send, late_receive);
    uint64_t refusals = hca_fixture_counter(&fixture.base, 1, "rnr_naks_sent");
    fixture_fini();
    return refusals;
}

TEST(Adversity, ARequesterWaitsForOneToTwoRnrTimers)
{
    uint64_t usual = refusals_under(0), fewer = refusals_under(ALWAYS);
    EXPECT_LT(fewer, usual);
    EXPECT_GE(fewer, usual / 2);
}

// --- order of accesses -----------------------------------------------------------------------------------------------

static struct {
    struct hca_fixture_qp data, flag;
    unsigned overtaken;
} race;

// Writes 4 KiB with one queue pair, then a flag with another one or the same; counts how often the flag is seen first.
static void data_and_flag(void *arg)
{
    (void)arg;
    const uint8_t *memory = fixture.far->memory;
    race.overtaken = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        memset(fixture.near->memory, (int)i, 4096);
        EXPECT_EQ(hca_fixture_send(&race.data, HCA_OP_WRITE, 0, 4096, fixture.far, 0), 0);
        EXPECT_EQ(hca_fixture_send(&race.flag, HCA_OP_WRITE, 0, 1, fixture.far, FLAG_AT), 0);
        while (memory[FLAG_AT] != i) {
            for (unsigned at = 64; at < 4096; at += 64) { // ascending within a message
                if (memory[at] == i) {
                    EXPECT_EQ(memory[at - 64], i);
                }
            }
            sim_thread_sleep(fixture.base.sim, 20 * NS);
        }
        race.overtaken += memory[4095] != i;
        EXPECT_EQ(hca_fixture_completion(&race.data).status, HCA_OK);
        EXPECT_EQ(hca_fixture_completion(&race.flag).status, HCA_OK);
    }
}

static unsigned overtaken_under(enum adversary_purpose purpose, uint32_t permille, bool same)
{
    fixture_init_adversarial(purpose, permille);
    race.data = race.flag = fixture.a;
    if (!same) {
        struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
        race.flag = hca_fixture_qp(fixture.near, HCA_RC);
        hca_fixture_connect(&race.flag, &peer);
    }
    fixture_run(data_and_flag, NULL);
    fixture_fini();
    return race.overtaken;
}

TEST(Adversity, DataOfAQueuePairAreSeenAfterTheFlagOfAnother)
{
    EXPECT_EQ(overtaken_under(ADVERSARY_ARRIVAL, 0, false), 0);
    EXPECT_GT(overtaken_under(ADVERSARY_ARRIVAL, ALWAYS / 2, false), 0);
    EXPECT_GT(overtaken_under(ADVERSARY_REQUEST, ALWAYS / 2, false), 0);
    EXPECT_GT(overtaken_under(ADVERSARY_GAP, ALWAYS, false), 0);
}

TEST(Adversity, AFlagNeverOvertakesTheDataOfItsOwnQueuePair)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        EXPECT_EQ(overtaken_under((enum adversary_purpose)purpose, ALWAYS / 2, true), 0);
    }
}

static unsigned passed;

// A read and then a write of the same byte, or the reverse; counts how often the read sees the write.
static void read_and_write(void *arg)
{
    const bool *read_first = arg;
    passed = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        fixture.near->memory[0] = (uint8_t)i;
        for (unsigned step = 0; step < 2; step++) {
            bool reads = (step == 0) == *read_first;
            EXPECT_EQ(
                hca_fixture_send(&fixture.a, reads ? HCA_OP_READ : HCA_OP_WRITE, reads ? 8 : 0, 1, fixture.far, 0), 0);
        }
        EXPECT_EQ(hca_fixture_completion(&fixture.a).wr_id, *read_first ? 8 : 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).wr_id, *read_first ? 0 : 8);
        passed += fixture.near->memory[8] == i;
        if (i != 1) {
            EXPECT_BETWEEN(fixture.near->memory[8], i - 1, i);
        }
    }
}

static unsigned passed_under(uint32_t permille, bool read_first)
{
    fixture_init_adversarial(ADVERSARY_READ, permille);
    hca_fixture_spawn(&fixture.base, "near", read_and_write, &read_first);
    hca_fixture_run(&fixture.base);
    fixture_fini();
    return passed;
}

TEST(Adversity, AWritePassesTheReadBeforeItAndNeverTheOtherWayRound)
{
    EXPECT_EQ(passed_under(0, true), 0);
    EXPECT_GT(passed_under(ALWAYS, true), 0);
    EXPECT_EQ(passed_under(ALWAYS, false), ROUNDS);
}
