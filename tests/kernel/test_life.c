// One simulation after another in one process.
#include <stdio.h>
#include <unistd.h>

#include "sim/kernel/counter.h"
#include "helpers.h"

TEST(Life, StartsEachSimulationAtZero)
{
    for (int i = 0; i < 3; i++) {
        struct record record = {.sim = helper_sim_create()};
        struct actor event, thread;
        actor_init(&event, &record, 'e');
        actor_init(&thread, &record, 't');
        thread.delay_ps = 700;
        EXPECT_EQ(sim_now_ps(record.sim), 0);
        EXPECT_EQ(sim_events_run(record.sim), 0);
        sim_event_schedule_at(record.sim, &event.event, 500);
        ASSERT_EQ(sim_thread_spawn(record.sim, "t", actor_thread, &thread), SIM_OK);
        EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
        EXPECT_STREQ(record.letters, "et");
        EXPECT_EQ(record.times_ps[0], 500);
        EXPECT_EQ(record.times_ps[1], 700);
        sim_destroy(record.sim);
    }
}

TEST(Life, AllowsOneSimulationAtATime)
{
    struct sim_config config = {.seed = 9};
    sim_t *sim = helper_sim_create();
    sim_t *second = sim;
    EXPECT_EQ(sim_create(&config, &second), SIM_ERR_BUSY);
    EXPECT_EQ(second, sim);
    sim_destroy(sim);
    ASSERT_EQ(sim_create(&config, &second), SIM_OK);
    EXPECT_EQ(sim_seed(second), 9);
    sim_destroy(second);
    EXPECT_EQ(sim_create(NULL, &second), SIM_ERR_INVALID);
}

TEST(Life, CarriesNothingOverToTheNextSimulation)
{
    static const struct sim_counter_desc desc = {"count", "things", "Things."};
    uint64_t value = 1;
    bool found = true;
    sim_t *sim = helper_sim_create();
    ASSERT_EQ(sim_counters_register(sim, "c", &desc, &value, 1), SIM_OK);
    sim_destroy(sim);
    sim = helper_sim_create();
    EXPECT_EQ(sim_counter_value(sim, "c", "count", &found), 0);
    EXPECT_FALSE(found);
    sim_destroy(sim);
}

struct blocked {
    sim_t *sim;
    sim_condition_t condition;
    unsigned entered, left;
};

static void nest_and_block(struct blocked *blocked, unsigned depth)
{
    static const struct sim_wait_reason reason = {"nobody", "anything", 0, 0};
    volatile char frame[64];
    frame[0] = (char)depth;
    if (depth > 0) {
        nest_and_block(blocked, depth - 1);
    } else if (blocked->entered++ % 2 == 0) {
        sim_condition_wait(blocked->sim, &blocked->condition, SIM_NEVER_PS, &reason);
    } else {
        sim_thread_sleep(blocked->sim, SIM_PS_PER_MS);
    }
    blocked->left += frame[0] == (char)depth;
}

static void block(void *arg)
{
    nest_and_block(arg, 20);
}

static void create_block_destroy(struct blocked *blocked, uint64_t time_limit_ps)
{
    *blocked = (struct blocked){.sim = helper_sim_create_limited(time_limit_ps, 0)};
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(sim_thread_spawn(blocked->sim, "t", block, blocked), SIM_OK);
    }
    EXPECT_EQ(sim_run(blocked->sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(sim_thread_count(blocked->sim), 4);
    sim_destroy(blocked->sim);
}

TEST(Life, EndsBlockedThreadsWithoutRunningThemFurther)
{
    struct blocked blocked;
    create_block_destroy(&blocked, 1000);
    EXPECT_EQ(blocked.entered, 4);
    EXPECT_EQ(blocked.left, 0);
}

TEST(Life, EndsThreadsThatNeverRan)
{
    struct blocked blocked = {.sim = helper_sim_create()};
    ASSERT_EQ(sim_thread_spawn(blocked.sim, "t", block, &blocked), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(blocked.sim, "u", block, &blocked), SIM_OK);
    sim_destroy(blocked.sim);
    EXPECT_EQ(blocked.entered, 0);
}

static long resident_pages(void)
{
    long total = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        FAIL("cannot read /proc/self/statm");
    }
    if (file != NULL) {
        fclose(file);
    }
    return resident;
}

TEST(Life, RepeatsTwoThousandTimesWithoutGrowing)
{
    // Sanitizers keep freed memory in quarantine; their build checks leaks by other means.
#ifdef __SANITIZE_ADDRESS__
    const long slack_bytes = 512L << 20;
#else
    const long slack_bytes = 1L << 20;
#endif
    struct blocked blocked;
    for (int i = 0; i < 200; i++) {
        create_block_destroy(&blocked, 1000);
    }
    long before = resident_pages();
    for (int i = 0; i < 2000; i++) {
        create_block_destroy(&blocked, 1000);
    }
    EXPECT_BETWEEN((resident_pages() - before) * sysconf(_SC_PAGESIZE), -slack_bytes, slack_bytes);
}

TEST(Life, KeepsNamesOfWhatEndsBeforeIt)
{
    sim_t *sim = helper_sim_create();
    char name[] = "node0.thread7";
    const char *kept = sim_name_keep(sim, name);
    name[12] = '8';
    EXPECT_STREQ(kept, "node0.thread7");
    EXPECT_STREQ(sim_name_keep(sim, name), "node0.thread8");
    name[12] = '7';
    EXPECT_EQ(sim_name_keep(sim, name), kept);
    sim_destroy(sim);
}
