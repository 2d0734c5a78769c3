// What an adversary does to the adapter, one purpose at a time: it is late, and keeps what is promised.
#include <errno.h>
#include <string.h>

#include "scene.h"

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
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, i, 1, scene.far, i), 0);
    }
    while (seen < WRITES) {
        EXPECT_EQ(hca_cq_wait(scene.a.cq, 100000000), 0);
        int count = hca_cq_poll(scene.a.cq, WRITES, wc);
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(wc[i].wr_id, seen++);
        }
        largest_batch = (unsigned)count > largest_batch ? (unsigned)count : largest_batch;
    }
}

TEST(Adversity, LateCompletionsComeTogetherAndInTheirOrder)
{
    scene_init_adversarial(ADVERSARY_COMPLETION, ALWAYS);
    largest_batch = 0;
    scene_run(many_writes, NULL);
    EXPECT_TRUE(largest_batch >= 8);
    scene_fini();
}

static uint64_t longest_ps;

static void single_writes(void *arg)
{
    (void)arg;
    longest_ps = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun_ps = sim_now_ps(scene.rig.sim);
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
        uint64_t took_ps = sim_now_ps(scene.rig.sim) - begun_ps;
        longest_ps = took_ps > longest_ps ? took_ps : longest_ps;
    }
}

static uint64_t longest_under(enum adversary_purpose purpose, uint32_t permille)
{
    scene_init_adversarial(purpose, permille);
    scene_run(single_writes, NULL);
    scene_fini();
    return longest_ps;
}

TEST(Adversity, NothingIsLaterThanItsRuleSays)
{
    static const enum adversary_purpose PURPOSES[] = {ADVERSARY_COMPLETION, ADVERSARY_ACKNOWLEDGE, ADVERSARY_REQUEST,
                                                      ADVERSARY_ARRIVAL};
    uint64_t usual_ps = longest_under(ADVERSARY_COMPLETION, 0);
    for (unsigned i = 0; i < sizeof PURPOSES / sizeof PURPOSES[0]; i++) {
        uint64_t late_ps = longest_under(PURPOSES[i], ALWAYS);
        EXPECT_TRUE(late_ps > usual_ps + most_ps(PURPOSES[i]) / 2);
        EXPECT_TRUE(late_ps < usual_ps + most_ps(PURPOSES[i]) + 1 * US);
    }
}

// What passes host memory more than once is late more than once.
TEST(Adversity, HostMemoryIsLate)
{
    uint64_t usual_ps = longest_under(ADVERSARY_MEMORY_WRITE, 0);
    EXPECT_TRUE(longest_under(ADVERSARY_MEMORY_WRITE, ALWAYS) > usual_ps + most_ps(ADVERSARY_MEMORY_WRITE) / 2);
    EXPECT_TRUE(longest_under(ADVERSARY_MEMORY_READ, ALWAYS) > usual_ps + most_ps(ADVERSARY_MEMORY_READ) / 2);
}

static uint64_t damaged_packets;
enum { LONG_BYTES = 16384, LONG_PACKETS = LONG_BYTES / 2048 };

static void long_write(void *arg)
{
    (void)arg;
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, LONG_BYTES, scene.far, 0), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    longest_ps = sim_now_ps(scene.rig.sim);
    damaged_packets = sim_counter_value(scene.rig.sim, "cable.1", "damaged_packets", NULL);
}

static uint64_t long_under(enum adversary_purpose purpose, uint32_t permille)
{
    scene_init_adversarial(purpose, permille);
    scene_run(long_write, NULL);
    EXPECT_MEMEQ(scene.far->memory, scene.near->memory, LONG_BYTES);
    scene_fini();
    return longest_ps;
}

TEST(Adversity, AMessagePausesBetweenItsPacketsNoLongerThanItsRuleSays)
{
    uint64_t usual_ps = long_under(ADVERSARY_GAP, 0), late_ps = long_under(ADVERSARY_GAP, ALWAYS);
    EXPECT_TRUE(late_ps > usual_ps + 1 * US);
    EXPECT_TRUE(late_ps < usual_ps + (LONG_PACKETS - 1) * most_ps(ADVERSARY_GAP));
}

// All packets of the message have left when the first one is asked for again.
TEST(Adversity, OnePacketAtATimeIsDamaged)
{
    (void)long_under(ADVERSARY_DAMAGE_REQUEST, ALWAYS);
    EXPECT_EQ(damaged_packets, 1);
}

TEST(Adversity, ALateAcknowledgeStandsForManyRequests)
{
    scene_init_adversarial(ADVERSARY_ACKNOWLEDGE, ALWAYS);
    scene_run(many_writes, NULL);
    EXPECT_TRUE(rig_counter(&scene.rig, 1, "acks_sent") < WRITES / 2);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "retries"), 0);
    scene_fini();
}

// The queue pair that has seen a message ends before its acknowledge was to leave.
static void write_and_end(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        struct rig_qp qp = rig_qp(scene.near, HCA_RC), peer = rig_qp(scene.far, HCA_RC);
        rig_connect(&qp, &peer);
        scene.near->memory[0] = (uint8_t)(i + 1);
        EXPECT_EQ(rig_send(&qp, HCA_OP_WRITE, 0, 1, scene.far, FLAG_AT), 0);
        while (scene.far->memory[FLAG_AT] != i + 1) {
            sim_thread_sleep(scene.rig.sim, 10 * NS);
        }
        rig_qp_close(&peer);
        EXPECT_EQ(rig_completion(&qp).status, HCA_OK);
        rig_qp_close(&qp);
    }
}

TEST(Adversity, TheLastAcknowledgeOfAQueuePairLeavesBeforeItsEnd)
{
    scene_init_adversarial(ADVERSARY_ACKNOWLEDGE, ALWAYS);
    scene_run(write_and_end, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "retries"), 0);
    scene_fini();
}

// --- events ----------------------------------------------------------------------------------------------------------

static unsigned empty;

// Polls as soon as there is a completion; the event comes once for each arming, and mostly finds nothing.
static void poll_before_the_event(void *arg)
{
    struct hca_event event;
    struct hca_wc wc;
    (void)arg;
    empty = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        EXPECT_EQ(hca_cq_arm(scene.a.cq, false), 0);
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
        bool early = hca_event_get(scene.near->context, HCA_NO_WAIT, &event) == 0;
        sim_thread_sleep(scene.rig.sim, most_ps(ADVERSARY_EVENT) + 10 * US);
        bool late = hca_event_get(scene.near->context, HCA_NO_WAIT, &event) == 0;
        EXPECT_EQ(early + late, 1);
        EXPECT_EQ(hca_event_get(scene.near->context, HCA_NO_WAIT, &event), -EAGAIN);
        empty += late;
        EXPECT_EQ(hca_cq_poll(scene.a.cq, 1, &wc), 0);
    }
}

TEST(Adversity, AnEventComesOnceAndMayFindItsCompletionTaken)
{
    scene_init_adversarial(ADVERSARY_EVENT, ALWAYS);
    scene_run(poll_before_the_event, NULL);
    EXPECT_TRUE(empty > ROUNDS / 2);
    scene_fini();
}

// --- timers ----------------------------------------------------------------------------------------------------------

static void late_receive(void *arg)
{
    (void)arg;
    sim_thread_sleep(scene.rig.sim, 2000 * US);
    EXPECT_EQ(rig_receive(&scene.b, 1, 4096, 4096), 0);
    EXPECT_EQ(rig_completion(&scene.b).status, HCA_OK);
}

static void early_send(void *arg)
{
    (void)arg;
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_SEND, 0, 64, scene.far, 0), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

static uint64_t refusals_under(uint32_t permille)
{
    scene_init_adversarial(ADVERSARY_RNR, permille);
    scene_run(early_send, late_receive);
    uint64_t refusals = rig_counter(&scene.rig, 1, "rnr_naks_sent");
    scene_fini();
    return refusals;
}

TEST(Adversity, ARequesterWaitsForOneToTwoRnrTimers)
{
    uint64_t usual = refusals_under(0), fewer = refusals_under(ALWAYS);
    EXPECT_TRUE(fewer < usual && fewer >= usual / 2);
}

// --- order of accesses -----------------------------------------------------------------------------------------------

static struct {
    struct rig_qp data, flag;
    unsigned overtaken;
} race;

// 4 KiB by one queue pair, then a flag by another one or the same; how often the flag is seen before the data.
static void data_and_flag(void *arg)
{
    (void)arg;
    const uint8_t *memory = scene.far->memory;
    race.overtaken = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        memset(scene.near->memory, (int)i, 4096);
        EXPECT_EQ(rig_send(&race.data, HCA_OP_WRITE, 0, 4096, scene.far, 0), 0);
        EXPECT_EQ(rig_send(&race.flag, HCA_OP_WRITE, 0, 1, scene.far, FLAG_AT), 0);
        while (memory[FLAG_AT] != i) {
            for (unsigned at = 64; at < 4096; at += 64) { // ascending within a message
                EXPECT_TRUE(memory[at] != i || memory[at - 64] == i);
            }
            sim_thread_sleep(scene.rig.sim, 20 * NS);
        }
        race.overtaken += memory[4095] != i;
        EXPECT_EQ(rig_completion(&race.data).status, HCA_OK);
        EXPECT_EQ(rig_completion(&race.flag).status, HCA_OK);
    }
}

static unsigned overtaken_under(enum adversary_purpose purpose, uint32_t permille, bool same)
{
    scene_init_adversarial(purpose, permille);
    race.data = race.flag = scene.a;
    if (!same) {
        struct rig_qp peer = rig_qp(scene.far, HCA_RC);
        race.flag = rig_qp(scene.near, HCA_RC);
        rig_connect(&race.flag, &peer);
    }
    scene_run(data_and_flag, NULL);
    scene_fini();
    return race.overtaken;
}

TEST(Adversity, DataOfAQueuePairAreSeenAfterTheFlagOfAnother)
{
    EXPECT_EQ(overtaken_under(ADVERSARY_ARRIVAL, 0, false), 0);
    EXPECT_TRUE(overtaken_under(ADVERSARY_ARRIVAL, ALWAYS / 2, false) > 0);
    EXPECT_TRUE(overtaken_under(ADVERSARY_REQUEST, ALWAYS / 2, false) > 0);
    EXPECT_TRUE(overtaken_under(ADVERSARY_GAP, ALWAYS, false) > 0);
}

TEST(Adversity, AFlagNeverOvertakesTheDataOfItsOwnQueuePair)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        EXPECT_EQ(overtaken_under((enum adversary_purpose)purpose, ALWAYS / 2, true), 0);
    }
}

static unsigned passed;

// A read and then a write of the same byte, or the other way round; how often the read sees the write.
static void read_and_write(void *arg)
{
    const bool *read_first = arg;
    passed = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        scene.near->memory[0] = (uint8_t)i;
        for (unsigned step = 0; step < 2; step++) {
            bool reads = (step == 0) == *read_first;
            EXPECT_EQ(rig_send(&scene.a, reads ? HCA_OP_READ : HCA_OP_WRITE, reads ? 8 : 0, 1, scene.far, 0), 0);
        }
        EXPECT_EQ(rig_completion(&scene.a).wr_id, *read_first ? 8 : 0);
        EXPECT_EQ(rig_completion(&scene.a).wr_id, *read_first ? 0 : 8);
        passed += scene.near->memory[8] == i;
        EXPECT_TRUE(scene.near->memory[8] == i || scene.near->memory[8] == i - 1 || i == 1);
    }
}

static unsigned passed_under(uint32_t permille, bool read_first)
{
    scene_init_adversarial(ADVERSARY_READ, permille);
    rig_spawn(&scene.rig, "near", read_and_write, &read_first);
    rig_run(&scene.rig);
    scene_fini();
    return passed;
}

TEST(Adversity, AWritePassesTheReadBeforeItAndNeverTheOtherWayRound)
{
    EXPECT_EQ(passed_under(0, true), 0);
    EXPECT_TRUE(passed_under(ALWAYS, true) > 0);
    EXPECT_EQ(passed_under(ALWAYS, false), ROUNDS);
}
