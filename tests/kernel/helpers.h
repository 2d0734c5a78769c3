// Shared by the kernel's tests: a simulation, and a record of what happened when.
#pragma once

#include <string.h>

#include "sim/kernel/bridge.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/thread.h"
#include "tests/shim/test.h"

static inline sim_t *helper_sim_create(void)
{
    struct sim_config config = {.seed = 1};
    sim_t *sim = NULL;
    EXPECT_EQ(sim_create(&config, &sim), SIM_OK);
    return sim;
}

static inline sim_t *helper_sim_create_limited(uint64_t time_limit_ps, uint64_t silence_limit_ps)
{
    struct sim_config config = {.seed = 1, .time_limit_ps = time_limit_ps, .silence_limit_ps = silence_limit_ps};
    sim_t *sim = NULL;
    EXPECT_EQ(sim_create(&config, &sim), SIM_OK);
    return sim;
}

enum { RECORD_MAX = 64 };

struct record {
    sim_t *sim;
    unsigned count;
    char letters[RECORD_MAX];
    uint64_t times_ps[RECORD_MAX];
};

static inline void record_add(struct record *record, char letter)
{
    if (record->count < RECORD_MAX - 1) {
        record->letters[record->count] = letter;
        record->times_ps[record->count] = sim_now_ps(record->sim);
        record->count++;
    }
}

// An actor writes its letter at its turn: as an event, or as a thread that sleeps first.
struct actor {
    struct record *record;
    char letter;
    uint64_t delay_ps;
    sim_event_t event;
};

static inline void actor_event(void *ctx)
{
    struct actor *actor = ctx;
    record_add(actor->record, actor->letter);
}

static inline void actor_init(struct actor *actor, struct record *record, char letter)
{
    *actor = (struct actor){.record = record, .letter = letter};
    sim_event_init(&actor->event, actor_event, actor);
}

static inline void actor_thread(void *arg)
{
    struct actor *actor = arg;
    sim_thread_sleep(actor->record->sim, actor->delay_ps);
    record_add(actor->record, actor->letter);
}
