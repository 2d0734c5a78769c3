#include "bench.h"

#include <string.h>

static uint8_t message[1024];

static void message_fill(void)
{
    for (size_t i = 0; i < sizeof message; i++) {
        message[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    }
}

static void store_one_word(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE + 16, message, 8);
    EXPECT_EQ(sim_now_ps(b->sim), 1 * NS);
    EXPECT_EQ(b->note_count, 0);
    host_core_fence(b->core);
    EXPECT_EQ(sim_now_ps(b->sim), 71 * NS); // a store, and the time to the root complex
}

TEST(Core, LetsACombinedStoreLeaveWithTheFence)
{
    struct bench b;
    message_fill();
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, store_one_word), SIM_RUN_DONE);
    EXPECT_EQ(b.note_count, 1);
    EXPECT_EQ(b.notes[0].address, DEVICE_BASE + 16);
    EXPECT_EQ(b.notes[0].bytes, 8);
    EXPECT_MEMEQ(b.notes[0].data, message, 8);
    bench_fini(&b);
}

static void store_across_lines(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE + 60, message, 72);
    // 1 + 8 + 1 aligned words were touched
    EXPECT_EQ(sim_now_ps(b->sim), 10 * NS);
    host_core_fence(b->core);
}

TEST(Core, SplitsAMessageAtLines)
{
    struct bench b;
    message_fill();
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, store_across_lines), SIM_RUN_DONE);
    ASSERT_EQ(b.note_count, 3);
    EXPECT_EQ(b.notes[0].address, DEVICE_BASE + 60);
    EXPECT_EQ(b.notes[0].bytes, 4);
    EXPECT_EQ(b.notes[1].address, DEVICE_BASE + 64);
    EXPECT_EQ(b.notes[1].bytes, 64);
    EXPECT_EQ(b.notes[2].address, DEVICE_BASE + 128);
    EXPECT_EQ(b.notes[2].bytes, 4);
    EXPECT_MEMEQ(b.notes[1].data, message + 4, 64);
    EXPECT_MEMEQ(b.notes[2].data, message + 68, 4);
    bench_fini(&b);
}

static void store_with_gaps(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE + 40, message, 8);
    host_core_store_wc(b->core, DEVICE_BASE + 8, message + 8, 3);
    host_core_fence(b->core);
}

TEST(Core, SendsALineWithGapsAsContiguousRuns)
{
    struct bench b;
    message_fill();
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, store_with_gaps), SIM_RUN_DONE);
    ASSERT_EQ(b.note_count, 2);
    EXPECT_EQ(b.notes[0].address, DEVICE_BASE + 8);
    EXPECT_EQ(b.notes[0].bytes, 3);
    EXPECT_EQ(b.notes[1].address, DEVICE_BASE + 40);
    EXPECT_EQ(b.notes[1].bytes, 8);
    bench_fini(&b);
}

static void store_full_line(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE, message, 64);
    host_core_store_wc(b->core, DEVICE_BASE + 64, message, 8);
    sim_thread_sleep(b->sim, 1000 * NS);
    EXPECT_EQ(b->note_count, 1); // the second line waits for a fence
}

TEST(Core, SendsAFullLineWithoutAFence)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, store_full_line), SIM_RUN_DONE);
    bench_fini(&b);
}

static void store_uncached(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE, message, 8);
    host_core_store_uc(b->core, DEVICE_BASE + 0x100, 0x1122334455667788ull, 4);
    EXPECT_EQ(sim_now_ps(b->sim), (1 + 70 + 50) * NS);
}

TEST(Core, PutsAnUncachedStoreBehindTheCombinedOnes)
{
    struct bench b;
    const uint8_t expected[4] = {0x88, 0x77, 0x66, 0x55};
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, store_uncached), SIM_RUN_DONE);
    ASSERT_EQ(b.note_count, 2);
    EXPECT_EQ(b.notes[0].address, DEVICE_BASE);
    EXPECT_EQ(b.notes[1].address, DEVICE_BASE + 0x100);
    EXPECT_MEMEQ(b.notes[1].data, expected, 4);
    bench_fini(&b);
}

static void store_to_the_other_socket(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE, message, 8);
    host_core_fence(b->core);
    EXPECT_EQ(sim_now_ps(b->sim), (1 + 110) * NS); // instead of 70 ns
    host_core_store_uc(b->core, DEVICE_BASE + 0x100, 1, 4);
    EXPECT_EQ(sim_now_ps(b->sim), (1 + 110 + 50 + 40) * NS); // as much more as a combined one
}

TEST(Core, PaysTheLongerWayOfAStoreToADeviceOfTheOtherSocket)
{
    struct bench b;
    bench_init(&b);
    ASSERT_EQ(pcie_rc_set_port_socket(b.rc, 0, 1), SIM_OK);
    EXPECT_EQ(bench_run(&b, store_to_the_other_socket), SIM_RUN_DONE);
    EXPECT_EQ(b.note_count, 2);
    bench_fini(&b);
}

static void hear_later(void *ctx)
{
    bench_release(ctx);
}

static void store_much(void *arg)
{
    struct bench *b = arg;
    host_core_store_wc(b->core, DEVICE_BASE, message, sizeof message);
    host_core_store_wc(b->core, DEVICE_BASE + sizeof message, message, sizeof message);
    host_core_fence(b->core);
    EXPECT_GT(sim_now_ps(b->sim), 5000 * NS);
}

TEST(Core, StallsWhileTheDeviceTakesNothingAndLosesNothing)
{
    struct bench b;
    sim_event_t hear;
    message_fill();
    bench_init(&b);
    b.holds = true;
    sim_event_init(&hear, hear_later, &b);
    sim_event_schedule(b.sim, &hear, 5000 * NS);
    EXPECT_EQ(bench_run(&b, store_much), SIM_RUN_DONE);
    ASSERT_EQ(b.note_count, 32);
    for (unsigned i = 0; i < 32; i++) {
        EXPECT_EQ(b.notes[i].address, DEVICE_BASE + 64ull * i);
        EXPECT_MEMEQ(b.notes[i].data, message + 64 * (i % 16), 64);
    }
    bench_fini(&b);
}

static void load_from_device(void *arg)
{
    struct bench *b = arg;
    uint64_t value = 0;
    b->answer = 0x0102030405060708ull;
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 8, 8, &value));
    EXPECT_EQ(value, 0x0102030405060708ull);
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 8, 4, &value));
    EXPECT_EQ(value, 0x05060708u);
    EXPECT_GT(sim_now_ps(b->sim), 60 * NS);
}

TEST(Core, LoadsWhatTheDeviceAnswers)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, load_from_device), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "uc_loads"), 2);
    bench_fini(&b);
}

static void load_what_is_refused_at_once(void *arg)
{
    struct bench *b = arg;
    uint64_t value = 0;
    EXPECT_FALSE(host_core_load_uc(b->core, HOLE, 8, &value));
    EXPECT_EQ(sim_now_ps(b->sim), (30 + 45) * NS); // to the root complex and back
}

TEST(Core, WaitsForTheAnswerOfALoadToComeFromTheRootComplex)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, load_what_is_refused_at_once), SIM_RUN_DONE);
    bench_fini(&b);
}

static void load_in_a_loop(void *arg)
{
    struct bench *b = arg;
    uint64_t value = 0;
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 8, 8, &value));
    }
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 16, 8, &value));
    host_core_store_uc(b->core, DEVICE_BASE + 24, 1, 4);
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 16, 8, &value));
}

TEST(Core, CountsTheTurnsOfALoopOfLoadsBesideTheLoads)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, load_in_a_loop), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "uc_loads"), 3);
    EXPECT_EQ(bench_counter(&b, "core", "poll_loads"), 4);
    EXPECT_EQ(bench_counter(&b, "core", "poll_load_bytes"), 32);
    bench_fini(&b);
}

static void load_stream_load(void *arg)
{
    struct bench *b = arg;
    uint64_t value = 0;
    uint8_t data[64];
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 8, 8, &value));
    EXPECT_TRUE(host_core_load_wc(b->core, DEVICE_BASE + 64, data, sizeof data));
    EXPECT_TRUE(host_core_load_uc(b->core, DEVICE_BASE + 8, 8, &value));
}

TEST(Core, CountsALoadBehindAStreamingLoadAsNoTurnOfALoop)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, load_stream_load), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "uc_loads"), 2);
    EXPECT_EQ(bench_counter(&b, "core", "poll_loads"), 0);
    bench_fini(&b);
}

static void load_from_nobody(void *arg)
{
    struct bench *b = arg;
    uint64_t value = 0;
    EXPECT_FALSE(host_core_load_uc(b->core, HOLE, 8, &value));
    EXPECT_EQ(value, UINT64_MAX);
}

TEST(Core, ReadsAllOnesWhereNobodyAnswers)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, load_from_nobody), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "uc_load_errors"), 1);
    bench_fini(&b);
}

static void read_the_clock(void *arg)
{
    static const struct sim_work work = {"library", "anything", false};
    struct bench *b = arg;
    EXPECT_EQ(host_core_timestamp_ps(b->core), 7 * NS);
    host_core_spend(b->core, 0, &work);
    EXPECT_EQ(sim_now_ps(b->sim), 7 * NS);
    host_core_spend(b->core, 5 * NS, &work);
    EXPECT_EQ(host_core_timestamp_ps(b->core), 19 * NS);
}

TEST(Core, PaysForReadingTheClock)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, read_the_clock), SIM_RUN_DONE);
    bench_fini(&b);
}

// Ten lines take less than five times as long as one.
static void stream_from_device(void *arg)
{
    struct bench *b = arg;
    uint8_t data[640];
    b->answer = 0x0101010101010101ull;
    uint64_t one_ps, start_ps = sim_now_ps(b->sim);
    EXPECT_TRUE(host_core_load_wc(b->core, DEVICE_BASE, data, 64));
    one_ps = sim_now_ps(b->sim) - start_ps;
    start_ps = sim_now_ps(b->sim);
    EXPECT_TRUE(host_core_load_wc(b->core, DEVICE_BASE + 60, data, 576));
    EXPECT_LT(sim_now_ps(b->sim) - start_ps, 5 * one_ps);
    for (unsigned i = 0; i < 576; i++) {
        EXPECT_EQ(data[i], 1);
    }
}

TEST(Core, OverlapsStreamingLoads)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, stream_from_device), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "wc_loads"), 11);
    bench_fini(&b);
}

static void stream_from_nobody(void *arg)
{
    struct bench *b = arg;
    uint8_t data[100];
    memset(data, 0, sizeof data);
    EXPECT_FALSE(host_core_load_wc(b->core, HOLE, data, sizeof data));
    EXPECT_EQ(data[0] & data[99], 0xff);
}

TEST(Core, StreamsAllOnesWhereNobodyAnswers)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, stream_from_nobody), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "wc_load_errors"), 2);
    bench_fini(&b);
}

// Nobody answers: the root complex refuses each line when its request has come.
static void stream_eleven_lines(void *arg)
{
    struct bench *b = arg;
    uint8_t data[11 * 64];
    EXPECT_FALSE(host_core_load_wc(b->core, HOLE, data, 64));
    EXPECT_EQ(sim_now_ps(b->sim), (2 + 30 + 45) * NS);
    EXPECT_FALSE(host_core_load_wc(b->core, HOLE, data, sizeof data));
    EXPECT_EQ(sim_now_ps(b->sim), (77 + 2 + 2 * 75) * NS); // the eleventh line waits for the buffer of the first one
}

TEST(Core, HoldsABufferUntilTheLineOfAStreamingLoadHasComeToIt)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, stream_eleven_lines), SIM_RUN_DONE);
    bench_fini(&b);
}
