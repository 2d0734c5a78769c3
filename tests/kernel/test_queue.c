// Events: their order, moving and cancelling them.
#include <stdlib.h>

#include "sim/kernel/random.h"
#include "helpers.h"

TEST(Queue, RunsEventsOfOneTimeInTheOrderOfScheduling)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[5];
    for (int i = 0; i < 5; i++) {
        actor_init(&actors[i], &record, (char)('a' + i));
    }
    const int order[5] = {2, 0, 4, 1, 3};
    for (int i = 0; i < 5; i++) {
        sim_event_schedule(record.sim, &actors[order[i]].event, 100);
    }
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "caebd");
    EXPECT_EQ(record.times_ps[4], 100);
    EXPECT_EQ(sim_events_run(record.sim), 5);
    sim_destroy(record.sim);
}

TEST(Queue, MovesAPendingEventBehindThoseOfItsNewTime)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor a, b;
    actor_init(&a, &record, 'a');
    actor_init(&b, &record, 'b');
    sim_event_schedule(record.sim, &a.event, 10);
    sim_event_schedule(record.sim, &b.event, 20);
    sim_event_schedule(record.sim, &a.event, 20);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "ba");
    EXPECT_EQ(record.times_ps[1], 20);
    sim_destroy(record.sim);
}

TEST(Queue, ForgetsACancelledEvent)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor a, b;
    actor_init(&a, &record, 'a');
    actor_init(&b, &record, 'b');
    sim_event_schedule(record.sim, &a.event, 10);
    sim_event_schedule(record.sim, &b.event, 20);
    EXPECT_TRUE(sim_event_pending(&a.event));
    sim_event_cancel(record.sim, &a.event);
    EXPECT_FALSE(sim_event_pending(&a.event));
    sim_event_cancel(record.sim, &a.event);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "b");
    sim_destroy(record.sim);
}

// --- comparison with a reference ---------------------------------------------------------------------------------

enum { MODEL_EVENTS = 300, MODEL_STEPS = 200000 };

struct model_event {
    struct model *model;
    bool pending;
    uint64_t due_ps, order;
    sim_event_t event;
};

// The reference: a flat array searched for the smallest (due_ps, order).
struct model {
    sim_t *sim;
    struct sim_random random;
    uint64_t scales; // delays are multiples of 1 ps, 600 ps and 0.4 us: the number of these scales in use
    uint64_t order;
    unsigned steps, wrong;
    struct model_event events[MODEL_EVENTS];
};

static struct model_event *model_next(struct model *model)
{
    struct model_event *next = NULL;
    for (int i = 0; i < MODEL_EVENTS; i++) {
        struct model_event *event = &model->events[i];
        if (event->pending && (next == NULL || event->due_ps < next->due_ps ||
                               (event->due_ps == next->due_ps && event->order < next->order))) {
            next = event;
        }
    }
    return next;
}

static void model_operate(struct model *model)
{
    struct model_event *event = &model->events[sim_random_below(&model->random, MODEL_EVENTS)];
    if (sim_random_below(&model->random, 4) == 0) {
        sim_event_cancel(model->sim, &event->event);
        event->pending = false;
        return;
    }
    static const uint64_t scale_ps[] = {1, 600, 400000};
    uint64_t delay_ps =
        sim_random_below(&model->random, 50) * scale_ps[sim_random_below(&model->random, model->scales)];
    sim_event_schedule(model->sim, &event->event, delay_ps);
    event->pending = true;
    event->due_ps = sim_now_ps(model->sim) + delay_ps;
    event->order = model->order++;
}

static void model_event_runs(void *ctx)
{
    struct model_event *event = ctx;
    struct model *model = event->model;
    model->wrong += event != model_next(model) || sim_now_ps(model->sim) != event->due_ps;
    event->pending = false;
    for (int i = 0; i < 2 && model->steps < MODEL_STEPS; i++) {
        model->steps++;
        model_operate(model);
    }
}

static void model_run(uint64_t scales)
{
    struct model *model = calloc(1, sizeof *model);
    model->sim = helper_sim_create();
    model->scales = scales;
    sim_random_init(&model->random, 7, "queue");
    for (int i = 0; i < MODEL_EVENTS; i++) {
        model->events[i].model = model;
        sim_event_init(&model->events[i].event, model_event_runs, &model->events[i]);
    }
    while (model->steps < MODEL_STEPS) {
        model_operate(model);
        EXPECT_EQ(sim_run(model->sim), SIM_RUN_DONE);
    }
    EXPECT_EQ(model->wrong, 0);
    EXPECT_NULL(model_next(model));
    sim_destroy(model->sim);
    free(model);
}

TEST(Queue, AgreesWithASearchedArrayUnderRandomOperations)
{
    model_run(1);
}

TEST(Queue, AgreesWithASearchedArrayWhenEventsAreNearAndFar)
{
    model_run(3);
}

// --- near and far ------------------------------------------------------------------------------------------------

static void schedules_both_for_100_us(void *ctx)
{
    struct actor *actors = ctx;
    sim_t *sim = actors[0].record->sim;
    sim_event_schedule_at(sim, &actors[2].event, 100000000);
    sim_event_schedule_at(sim, &actors[3].event, 99999999);
}

TEST(Queue, OrdersEventsOfOneTimeThatWereScheduledLongBeforeAndJustBefore)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[4];
    sim_event_t just_before;
    for (int i = 0; i < 4; i++) {
        actor_init(&actors[i], &record, (char)('a' + i));
    }
    sim_event_schedule(record.sim, &actors[0].event, 100000000);
    sim_event_schedule(record.sim, &actors[1].event, 99999999);
    sim_event_init(&just_before, schedules_both_for_100_us, actors);
    sim_event_schedule(record.sim, &just_before, 99999990);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "bdac");
    sim_destroy(record.sim);
}

TEST(Queue, RunsAnEventAtTheEndOfTheNearLevelBehindANearerOne)
{
    const uint64_t ring_ps = 2048 * 1024; // the ring has 2048 buckets of 1024 ps
    for (uint64_t due_ps = ring_ps - 1024; due_ps <= ring_ps + 1024; due_ps += 512) {
        TEST_TRACE("due at %llu ps", (unsigned long long)due_ps);
        struct record record = {.sim = helper_sim_create()};
        const uint64_t due[3] = {100, ring_ps / 2, due_ps}; // the first one is in the bucket of now
        struct actor actors[3];
        for (int i = 2; i >= 0; i--) {
            actor_init(&actors[i], &record, (char)('a' + i));
            sim_event_schedule(record.sim, &actors[i].event, due[i]);
        }
        EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
        EXPECT_STREQ(record.letters, "abc");
        EXPECT_MEMEQ(record.times_ps, due, sizeof due);
        sim_destroy(record.sim);
    }
}

TEST(Queue, HoldsTensOfThousandsOfEvents)
{
    enum { COUNT = 50000 };
    struct record record = {.sim = helper_sim_create()};
    struct actor *actors = calloc(COUNT, sizeof *actors);
    for (int i = 0; i < COUNT; i++) {
        actor_init(&actors[i], &record, 'x');
        sim_event_schedule(record.sim, &actors[i].event, (uint64_t)(COUNT - i));
    }
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_EQ(sim_events_run(record.sim), COUNT);
    EXPECT_EQ(sim_now_ps(record.sim), COUNT);
    sim_destroy(record.sim);
    free(actors);
}

// --- the order of an instant -----------------------------------------------------------------------------------------

TEST(Queue, RunsLateEventsBehindAllOthersOfTheirInstant)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[3];
    for (int i = 0; i < 3; i++) {
        actor_init(&actors[i], &record, (char)('a' + i));
    }
    sim_event_init_update(record.sim, &actors[0].event, actor_event, &actors[0]);
    sim_event_schedule(record.sim, &actors[0].event, 100);
    sim_event_schedule(record.sim, &actors[1].event, 100);
    sim_event_schedule(record.sim, &actors[2].event, 101);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "bac");
    sim_destroy(record.sim);
}

TEST(Queue, RunsLateEventsOfOneTimeInTheOrderOfTheirInit)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[4];
    for (int i = 0; i < 4; i++) {
        actor_init(&actors[i], &record, (char)('a' + i));
        sim_event_init_update(record.sim, &actors[i].event, actor_event, &actors[i]);
    }
    const int order[4] = {2, 0, 3, 1};
    const uint64_t far_ps = 100000000; // in the other level of the queue
    for (int i = 0; i < 4; i++) {
        sim_event_schedule(record.sim, &actors[order[i]].event, i < 2 ? 100 : far_ps);
    }
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "acbd");
    sim_destroy(record.sim);
}

struct updater {
    struct record *record;
    struct actor *actors;
    sim_event_t decides;
};

static void updater_decides(void *ctx)
{
    struct updater *updater = ctx;
    sim_event_schedule(updater->record->sim, &updater->actors[1].event, 0);
}

TEST(Queue, RunsWhatAnUpdateEventSchedulesForNowBeforeTheNextUpdate)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[2];
    struct updater updater = {.record = &record, .actors = actors};
    actor_init(&actors[0], &record, 'a');
    actor_init(&actors[1], &record, 'b');
    sim_event_init_update(record.sim, &updater.decides, updater_decides, &updater);
    sim_event_init_update(record.sim, &actors[0].event, actor_event, &actors[0]);
    sim_event_schedule(record.sim, &actors[0].event, 100);
    sim_event_schedule(record.sim, &updater.decides, 100);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "ba");
    sim_destroy(record.sim);
}
