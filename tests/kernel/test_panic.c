// Broken invariants end the process and report time and component. Each case runs in a child process.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

static void child_run(int out, void (*fn)(void))
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(out, STDERR_FILENO);
    fn();
    _exit(0);
}

// Expects fn to abort after a text that contains `part` on standard error.
static void expect_panic(void (*fn)(void), const char *part)
{
    char text[1024] = "";
    size_t used = 0;
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        child_run(pipe_ends[1], fn);
    }
    close(pipe_ends[1]);
    ssize_t got = 1;
    while (got > 0 && used < sizeof text - 1) {
        got = read(pipe_ends[0], text + used, sizeof text - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    close(pipe_ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_CONTAINS(text, part);
}

static void panic_outside(void)
{
    sim_panic("test", "number %d", 5);
}

TEST(Panic, SaysThatThereIsNoSimulation)
{
    expect_panic(panic_outside, "tcasim: internal error outside a simulation in test: number 5\n");
}

static void panic_event(void *ctx)
{
    (void)ctx;
    sim_panic("node0.hca", "credit below zero");
}

static void panic_inside(void)
{
    sim_event_t event;
    sim_t *sim = helper_sim_create();
    sim_event_init(&event, panic_event, NULL);
    sim_event_schedule(sim, &event, 4711);
    sim_run(sim);
}

TEST(Panic, NamesTimeAndComponent)
{
    expect_panic(panic_inside, "tcasim: internal error at 4711 ps in node0.hca: credit below zero\n");
}

static void sleep_outside_a_thread(void)
{
    sim_thread_sleep(helper_sim_create(), 1);
}

TEST(Panic, RefusesToPutAnythingButAThreadToSleep)
{
    expect_panic(sleep_outside_a_thread, "sim_thread_sleep called outside a thread");
}

static void nested_run(void *arg)
{
    sim_run(arg);
}

static void run_inside_run(void)
{
    sim_t *sim = helper_sim_create();
    sim_thread_spawn(sim, "t", nested_run, sim);
    sim_run(sim);
}

TEST(Panic, RefusesToRunInsideARun)
{
    expect_panic(run_inside_run, "sim_run called inside sim_run");
}

static void schedule_in_the_past_event(void *ctx)
{
    struct actor *actor = ctx;
    sim_event_schedule_at(actor->record->sim, &actor->event, 9);
}

static void schedule_in_the_past(void)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actor;
    actor_init(&actor, &record, 'a');
    sim_event_init(&actor.event, schedule_in_the_past_event, &actor);
    sim_event_schedule(record.sim, &actor.event, 10);
    sim_run(record.sim);
}

TEST(Panic, RefusesEventsInThePast)
{
    expect_panic(schedule_in_the_past, "at 10 ps in kernel: event scheduled at 9 ps, in the past");
}
