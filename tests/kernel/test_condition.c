// Conditions: signals, deadlines and the order of wake-ups.
#include "helpers.h"

struct waiter {
    struct record *record;
    sim_condition_t *condition;
    char letter;
    uint64_t deadline_ps;
    bool signalled;
};

static void wait_once(void *arg)
{
    static const struct sim_wait_reason reason = {"nobody", "a signal", 0, 0};
    struct waiter *waiter = arg;
    waiter->signalled = sim_condition_wait(waiter->record->sim, waiter->condition, waiter->deadline_ps, &reason);
    record_add(waiter->record, waiter->letter);
}

struct signaller {
    sim_t *sim;
    sim_condition_t condition;
    sim_event_t event;
};

static void signal_now(void *ctx)
{
    struct signaller *signaller = ctx;
    sim_condition_signal(signaller->sim, &signaller->condition);
}

static void run_waiters(struct record *record, struct waiter *waiters, int count, uint64_t signal_ps)
{
    struct signaller signaller = {.sim = record->sim};
    sim_condition_init(&signaller.condition);
    sim_event_init(&signaller.event, signal_now, &signaller);
    for (int i = 0; i < count; i++) {
        waiters[i].record = record;
        waiters[i].condition = &signaller.condition;
        waiters[i].letter = (char)('a' + i);
        ASSERT_EQ(sim_thread_spawn(record->sim, "t", wait_once, &waiters[i]), SIM_OK);
    }
    sim_event_schedule(record->sim, &signaller.event, signal_ps);
    EXPECT_EQ(sim_run(record->sim), SIM_RUN_DONE);
    EXPECT_NULL(signaller.condition.first);
    EXPECT_NULL(signaller.condition.last);
    sim_destroy(record->sim);
}

TEST(Condition, WakesEveryWaiterInTheOrderOfComing)
{
    struct record record = {.sim = helper_sim_create()};
    struct waiter waiters[3] = {
        {.deadline_ps = SIM_NEVER_PS}, {.deadline_ps = 500}, {.deadline_ps = SIM_NEVER_PS}};
    run_waiters(&record, waiters, 3, 100);
    EXPECT_STREQ(record.letters, "abc");
    EXPECT_EQ(record.times_ps[2], 100);
    EXPECT_TRUE(waiters[0].signalled && waiters[1].signalled && waiters[2].signalled);
}

TEST(Condition, TellsTheDeadlineFromTheSignal)
{
    struct record record = {.sim = helper_sim_create()};
    struct waiter waiters[3] = {{.deadline_ps = 101}, {.deadline_ps = 99}, {.deadline_ps = SIM_NEVER_PS}};
    run_waiters(&record, waiters, 3, 100);
    EXPECT_STREQ(record.letters, "bac");
    EXPECT_EQ(record.times_ps[0], 99);
    EXPECT_TRUE(waiters[0].signalled);
    EXPECT_FALSE(waiters[1].signalled);
    EXPECT_TRUE(waiters[2].signalled);
}

TEST(Condition, DropsADeadlineThatTheSignalForestalled)
{
    struct record record = {.sim = helper_sim_create()};
    struct waiter waiters[1] = {{.deadline_ps = 5000}};
    run_waiters(&record, waiters, 1, 100);
    EXPECT_EQ(record.count, 1);
    EXPECT_EQ(record.times_ps[0], 100);
}

TEST(Condition, ReturnsAtOnceWhenTheDeadlineHasPassed)
{
    struct record record = {.sim = helper_sim_create()};
    struct waiter waiters[1] = {{.deadline_ps = 0}};
    run_waiters(&record, waiters, 1, 100);
    EXPECT_FALSE(waiters[0].signalled);
    EXPECT_EQ(record.times_ps[0], 0);
}

TEST(Condition, DoesNotYieldWhenTheDeadlineIsNow)
{
    struct record record = {.sim = helper_sim_create()};
    sim_condition_t condition;
    struct waiter waiter = {.record = &record, .condition = &condition, .letter = 'w', .deadline_ps = 100};
    struct actor spawner, behind;
    sim_condition_init(&condition);
    actor_init(&spawner, &record, 's');
    actor_init(&behind, &record, 'b');
    sim_event_schedule(record.sim, &spawner.event, 100);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    ASSERT_EQ(sim_thread_spawn(record.sim, "t", wait_once, &waiter), SIM_OK);
    sim_event_schedule(record.sim, &behind.event, 0);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_FALSE(waiter.signalled);
    EXPECT_STREQ(record.letters, "swb");
    sim_destroy(record.sim);
}

// Waits until a deadline and then sleeps.
static void wait_then_sleep(void *arg)
{
    struct waiter *waiter = arg;
    wait_once(waiter);
    sim_thread_sleep(waiter->record->sim, 1000);
    record_add(waiter->record, 'z');
}

static void wait_twice(void *arg)
{
    struct waiter *waiter = arg;
    wait_once(waiter);
    sim_thread_sleep(waiter->record->sim, 15);
    waiter->deadline_ps = SIM_NEVER_PS;
    wait_once(waiter);
}

TEST(Condition, WakesNobodyWhoseWaitIsOver)
{
    struct record record = {.sim = helper_sim_create()};
    struct signaller signaller = {.sim = record.sim};
    struct waiter twice = {&record, &signaller.condition, 't', 10, false};
    struct waiter once = {&record, &signaller.condition, 'o', 20, false}; // behind the first wait of the other
    sim_condition_init(&signaller.condition);
    sim_event_init(&signaller.event, signal_now, &signaller);
    ASSERT_EQ(sim_thread_spawn(record.sim, "twice", wait_twice, &twice), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(record.sim, "once", wait_then_sleep, &once), SIM_OK);
    sim_event_schedule(record.sim, &signaller.event, 30);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "totz");
    EXPECT_EQ(record.times_ps[2], 30);
    EXPECT_EQ(record.times_ps[3], 1020);
    EXPECT_TRUE(twice.signalled);
    sim_destroy(record.sim);
}

struct player {
    sim_t *sim;
    sim_condition_t *mine, *other;
    unsigned *rallies;
    bool serves;
};

static void play(void *arg)
{
    static const struct sim_wait_reason reason = {"other", "the ball", 0, 0};
    struct player *player = arg;
    if (player->serves) {
        sim_condition_signal(player->sim, player->other);
    }
    for (int i = 0; i < 1000; i++) {
        sim_condition_wait(player->sim, player->mine, SIM_NEVER_PS, &reason);
        ++*player->rallies;
        sim_thread_sleep(player->sim, 10);
        sim_condition_signal(player->sim, player->other);
    }
}

TEST(Condition, PassesABallBetweenTwoThreads)
{
    sim_t *sim = helper_sim_create();
    sim_condition_t a, b;
    sim_condition_init(&a);
    sim_condition_init(&b);
    unsigned rallies = 0;
    struct player left = {sim, &a, &b, &rallies, false};
    struct player right = {sim, &b, &a, &rallies, true};
    ASSERT_EQ(sim_thread_spawn(sim, "left", play, &left), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(sim, "right", play, &right), SIM_OK);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_EQ(rallies, 2000);
    EXPECT_EQ(sim_now_ps(sim), 20000);
    sim_destroy(sim);
}
