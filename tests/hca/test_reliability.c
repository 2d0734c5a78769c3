// Whatever packets the wire loses, and in whatever order the host answers, a reliable connection delivers each message
// once and in order.
#include <string.h>

#include "sim/adversary/adversary.h"
#include "sim/kernel/random.h"
#include "tests/support/hca_fixture.h"

enum { SLOT_BYTES = 16384, SLOTS = 16, ATOMIC_AT = 900000, FETCHED_AT = 900008 };

// A random walk over requests, checked against a model in plain memory. Each request has its own slots at both sides,
// so that its effect is known when it completes.
struct walk {
    struct hca_fixture fixture;
    struct hca_fixture_process *near, *far;
    struct hca_fixture_qp a, b;
    struct sim_random random;
    unsigned count;
    uint8_t model_near[REGION_BYTES], model_far[REGION_BYTES];
    uint64_t sum;
    unsigned sends, received;
};
static struct walk walk;

static void walk_connect(uint8_t retry_count)
{
    struct hca_qp_attr to_b = hca_fixture_attr(&walk.b), to_a = hca_fixture_attr(&walk.a);
    to_b.retry_count = to_a.retry_count = retry_count;
    hca_fixture_connect_with(&walk.a, &to_b);
    hca_fixture_connect_with(&walk.b, &to_a);
}

static void walk_init_with(const struct hca_config *config, uint64_t seed, uint8_t retry_count)
{
    memset(&walk, 0, sizeof walk);
    hca_fixture_init_with(&walk.fixture, config, "core-i7-2600k");
    walk.near = hca_fixture_process(&walk.fixture, 0);
    walk.far = hca_fixture_process(&walk.fixture, 1);
    walk.a = hca_fixture_qp(walk.near, HCA_RC);
    walk.b = hca_fixture_qp(walk.far, HCA_RC);
    walk_connect(retry_count);
    sim_random_init(&walk.random, seed, "walk");
    for (uint32_t i = 0; i < SLOTS * SLOT_BYTES; i++) {
        walk.model_near[i] = walk.near->memory[i] = (uint8_t)sim_random_u64(&walk.random);
        walk.model_far[i + 2 * SLOTS * SLOT_BYTES] = walk.far->memory[i + 2 * SLOTS * SLOT_BYTES] =
            (uint8_t)sim_random_u64(&walk.random);
    }
}

static void walk_init(const struct hca_config *config, uint64_t seed)
{
    walk_init_with(config, seed, 7);
}

// Request i uses slot i of the local side; writes and sends go to slot i of the far side's first part, reads copy from
// the far side's third part into the near side's second.
static void post_random(unsigned i)
{
    static const enum hca_opcode KINDS[] = {HCA_OP_WRITE, HCA_OP_READ, HCA_OP_FETCH_ADD, HCA_OP_SEND};
    enum hca_opcode opcode = KINDS[sim_random_below(&walk.random, 4)];
    uint32_t bytes = (uint32_t)sim_random_below(&walk.random, i % 3 == 0 ? SLOT_BYTES - 16 : 100);
    uint32_t here = i % SLOTS * SLOT_BYTES + (uint32_t)sim_random_below(&walk.random, 16);
    uint32_t slot = i % SLOTS * SLOT_BYTES + (uint32_t)sim_random_below(&walk.random, 16);
    uint32_t third = 2 * SLOTS * SLOT_BYTES + slot, second = SLOTS * SLOT_BYTES + here;
    if (opcode == HCA_OP_READ) {
        memcpy(walk.model_near + second, walk.model_far + third, bytes);
        EXPECT_EQ(hca_fixture_send(&walk.a, opcode, second, bytes, walk.far, third), 0);
    } else if (opcode == HCA_OP_FETCH_ADD) {
        EXPECT_EQ(hca_fixture_send(&walk.a, opcode, FETCHED_AT, 8, walk.far, ATOMIC_AT), 0);
        memcpy(walk.model_near + FETCHED_AT, &walk.sum, 8);
        walk.sum++;
    } else {
        uint32_t to = opcode == HCA_OP_SEND ? 3 * SLOTS * SLOT_BYTES + walk.sends++ % SLOTS * 4096 : slot;
        bytes = opcode == HCA_OP_SEND ? bytes % 4096 : bytes;
        memcpy(walk.model_far + to, walk.model_near + here, bytes);
        EXPECT_EQ(hca_fixture_send(&walk.a, opcode, here, bytes, walk.far, to), 0);
    }
}

static void near_walk(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < walk.count; i++) {
        post_random(i);
        if (i % 8 == 7) { // eight in flight
            for (unsigned n = 0; n < 8; n++) {
                EXPECT_EQ(hca_fixture_completion(&walk.a).status, HCA_OK);
            }
        }
    }
}

static void far_walk(void *arg)
{
    (void)arg;
    unsigned posted = 0;
    while (posted < SLOTS) {
        EXPECT_EQ(hca_fixture_receive(&walk.b, posted, 3 * SLOTS * SLOT_BYTES + posted % SLOTS * 4096, 4096), 0);
        posted++;
    }
    hca_fixture_spawn(&walk.fixture, "near", near_walk, NULL);
    while (hca_cq_wait(walk.b.cq, 20000000) == 0) {
        EXPECT_EQ(hca_fixture_completion(&walk.b).wr_id, walk.received);
        walk.received++;
        EXPECT_EQ(hca_fixture_receive(&walk.b, posted, 3 * SLOTS * SLOT_BYTES + posted % SLOTS * 4096, 4096), 0);
        posted++;
    }
}

static void walk_run(unsigned count)
{
    walk.count = count;
    hca_fixture_spawn(&walk.fixture, "far", far_walk, NULL);
    hca_fixture_run(&walk.fixture);
    memcpy(walk.model_far + ATOMIC_AT, &walk.sum, 8);
    EXPECT_EQ(walk.received, walk.sends);
    EXPECT_MEMEQ(walk.near->memory, walk.model_near, REGION_BYTES);
    EXPECT_MEMEQ(walk.far->memory, walk.model_far, REGION_BYTES);
}

TEST(Reliability, RandomRequestsLeaveWhatTheModelSays)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    for (uint64_t seed = 1; seed <= 4; seed++) {
        walk_init(&config, seed);
        walk_run(400);
        EXPECT_EQ(hca_fixture_counter(&walk.fixture, 0, "retries"), 0);
        hca_fixture_fini(&walk.fixture);
    }
}

// Loses or damages packets in both directions at its own intervals, rarely enough that seven retries succeed.
struct vandal {
    sim_event_t event;
    uint64_t left;
    struct sim_random random;
};
static struct vandal vandal;

static void vandal_run(void *ctx)
{
    (void)ctx;
    unsigned side = (unsigned)sim_random_below(&vandal.random, 2);
    if (sim_random_below(&vandal.random, 2) == 0) {
        ib_link_drop_next(walk.fixture.cable, side, 1);
    } else {
        ib_link_damage_next(walk.fixture.cable, side, 1);
    }
    if (--vandal.left > 0) {
        sim_event_schedule(walk.fixture.sim, &vandal.event, sim_random_below(&vandal.random, 300) * US + 1);
    }
}

TEST(Reliability, RandomRequestsSurviveALossyCable)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    uint64_t retries = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        walk_init(&config, seed);
        vandal.left = 60;
        sim_random_init(&vandal.random, seed, "vandal");
        sim_event_init(&vandal.event, vandal_run, NULL);
        sim_event_schedule(walk.fixture.sim, &vandal.event, 1 * US);
        walk_run(1200);
        retries += hca_fixture_counter(&walk.fixture, 0, "retries");
        hca_fixture_fini(&walk.fixture);
    }
    EXPECT_GT(retries, 50);
}

TEST(Reliability, RandomRequestsSurviveOneReadTagAndTinyQueues)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.read_tags = 1;
    config.write_tlps = 1;
    config.gather_packets = 1;
    config.order_entries = 1;
    config.prefetch_requests = 1;
    config.window_packets = 1;
    walk_init(&config, 9);
    walk_run(200);
    hca_fixture_fini(&walk.fixture);
}

TEST(Reliability, CompletionsOfAReadMayCrossOnPciExpress)
{
    struct hca_config config = preset_hca("connectx3-qdr");
    config.mrrs_bytes = 128; // sixteen requests for a packet, answered in parts of 64 and 128 B
    config.read_tags = 64;
    walk_init(&config, 5);
    walk_run(200);
    hca_fixture_fini(&walk.fixture);
}

// --- late receivers --------------------------------------------------------------------------------------------------

static void late_receiver(void *arg)
{
    (void)arg;
    sim_thread_sleep(walk.fixture.sim, 200 * US);
    EXPECT_EQ(hca_fixture_receive(&walk.b, 1, 4096, 4096), 0);
    EXPECT_EQ(hca_fixture_completion(&walk.b).status, HCA_OK);
}

static void early_sender(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&walk.a, HCA_OP_SEND, 0, 4096, walk.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&walk.a).status, HCA_OK);
}

TEST(Reliability, ASendWaitsForAReceiverThatIsNotReady)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    walk_init(&config, 1);
    hca_fixture_spawn(&walk.fixture, "near", early_sender, NULL);
    hca_fixture_spawn(&walk.fixture, "far", late_receiver, NULL);
    hca_fixture_run(&walk.fixture);
    EXPECT_MEMEQ(walk.far->memory + 4096, walk.near->memory, 4096);
    EXPECT_GT(hca_fixture_counter(&walk.fixture, 1, "rnr_naks_sent"), 5);
    EXPECT_EQ(hca_fixture_counter(&walk.fixture, 0, "timeouts"), 0);
    hca_fixture_fini(&walk.fixture);
}

static void late_twice(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        sim_thread_sleep(walk.fixture.sim, 5000 * US);
        EXPECT_EQ(hca_fixture_receive(&walk.b, i, 4096, 4096), 0);
        EXPECT_EQ(hca_fixture_completion(&walk.b).status, HCA_OK);
    }
}

static void early_twice(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_send(&walk.a, HCA_OP_SEND, 0, 4096, walk.far, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&walk.a).status, HCA_OK);
    }
}

// Each of the two sends is refused once: with one retry, the second needs the first one's back.
TEST(Reliability, RnrRetriesCountForEachRequestAnew)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    hca_fixture_init_with(&walk.fixture, &config, "core-i7-2600k");
    walk.near = hca_fixture_process(&walk.fixture, 0);
    walk.far = hca_fixture_process(&walk.fixture, 1);
    walk.a = hca_fixture_qp(walk.near, HCA_RC);
    walk.b = hca_fixture_qp(walk.far, HCA_RC);
    struct hca_qp_attr to_b = hca_fixture_attr(&walk.b), to_a = hca_fixture_attr(&walk.a);
    to_a.rnr_retry = to_b.rnr_retry = 1;
    to_a.min_rnr_timer = to_b.min_rnr_timer = 20;
    hca_fixture_connect_with(&walk.a, &to_b);
    hca_fixture_connect_with(&walk.b, &to_a);
    hca_fixture_spawn(&walk.fixture, "near", early_twice, NULL);
    hca_fixture_spawn(&walk.fixture, "far", late_twice, NULL);
    hca_fixture_run(&walk.fixture);
    EXPECT_EQ(hca_fixture_counter(&walk.fixture, 1, "rnr_naks_sent"), 2);
    hca_fixture_fini(&walk.fixture);
}

// --- single losses ---------------------------------------------------------------------------------------------------

struct loss {
    enum hca_opcode opcode;
    unsigned side;
    const char *counter; // of node `at`; must have increased
    unsigned at;
};

static void loss_sender(void *arg)
{
    const struct loss *loss = arg;
    ib_link_drop_next(walk.fixture.cable, loss->side, 1);
    uint32_t bytes = loss->opcode == HCA_OP_FETCH_ADD ? 8 : 10000;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(hca_fixture_send(&walk.a, loss->opcode, 0, bytes, walk.far, 524288), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(hca_fixture_completion(&walk.a).status, HCA_OK);
    }
}

static void expect_recovery(struct loss loss)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    walk_init(&config, 1);
    memset(walk.far->memory + 524288, 0, 8);
    hca_fixture_spawn(&walk.fixture, "near", loss_sender, &loss);
    hca_fixture_run(&walk.fixture);
    EXPECT_GT(hca_fixture_counter(&walk.fixture, loss.at, loss.counter), 0);
    EXPECT_GT(hca_fixture_counter(&walk.fixture, 0, "retries"), 0);
    if (loss.opcode == HCA_OP_FETCH_ADD) {
        uint64_t sum;
        memcpy(&sum, walk.far->memory + 524288, 8);
        EXPECT_EQ(sum, 3); // each of them once
    }
    hca_fixture_fini(&walk.fixture);
}

TEST(Reliability, ALostWritePacketIsAskedForByASequenceNak)
{
    expect_recovery((struct loss){HCA_OP_WRITE, 0, "naks_sent", 1});
}

TEST(Reliability, ALostReadRequestIsSentAgain)
{
    expect_recovery((struct loss){HCA_OP_READ, 0, "out_of_sequence", 1});
}

TEST(Reliability, ALostReadResponseIsReadAgain)
{
    expect_recovery((struct loss){HCA_OP_READ, 1, "duplicate_requests", 1});
}

TEST(Reliability, ALostAtomicResponseIsAnsweredFromMemoryOfIt)
{
    expect_recovery((struct loss){HCA_OP_FETCH_ADD, 1, "duplicate_requests", 1});
}

// --- an adversary ----------------------------------------------------------------------------------------------------

static adversary_t *adversarial_init(uint64_t seed, uint8_t retry_count, struct hca_config *config)
{
    adversary_t *adversary = NULL;
    EXPECT_EQ(adversary_create(seed, &adversary), SIM_OK);
    *config = preset_hca("connectx-qdr");
    config->adversary = adversary;
    walk_init_with(config, seed, retry_count);
    return adversary;
}

TEST(Reliability, RandomRequestsSurviveAnAdversary)
{
    struct hca_config config;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        adversary_t *adversary = adversarial_init(seed, 1, &config);
        walk_run(400);
        hca_fixture_fini(&walk.fixture);
        adversary_destroy(adversary);
    }
}

static uint64_t damaged(void)
{
    return sim_counter_value(walk.fixture.sim, "cable.0", "damaged_packets", NULL) +
           sim_counter_value(walk.fixture.sim, "cable.1", "damaged_packets", NULL);
}

// Every packet that may be damaged is damaged: this costs only one retry between two steps of progress.
TEST(Reliability, OneRetryIsEnoughForAllThatAnAdversaryDamages)
{
    static const enum adversary_purpose PURPOSES[] = {ADVERSARY_DAMAGE_REQUEST, ADVERSARY_DAMAGE_ANSWER};
    struct hca_config config;
    for (unsigned i = 0; i < 20; i++) {
        adversary_t *adversary = adversarial_init(i, 1, &config);
        adversary_only(adversary, PURPOSES[i % 2], i < 10 ? 1000 : 200);
        walk_run(200);
        EXPECT_GT(damaged(), 10);
        EXPECT_GT(hca_fixture_counter(&walk.fixture, 0, "retries"), 10);
        hca_fixture_fini(&walk.fixture);
        adversary_destroy(adversary);
    }
}

TEST(Reliability, AnAdversaryDamagesNothingOfWhoDoesNotRetry)
{
    struct hca_config config;
    adversary_t *adversary = adversarial_init(3, 0, &config);
    adversary_only(adversary, ADVERSARY_DAMAGE_REQUEST, 1000);
    walk_run(100);
    EXPECT_EQ(damaged(), 0);
    hca_fixture_fini(&walk.fixture);
    adversary_destroy(adversary);
}
