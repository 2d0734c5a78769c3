// Trace points.
#include "sim/kernel/trace.h"
#include "helpers.h"

static const struct sim_trace_point tlp_sent = {"tlp_sent", "address", NULL, "The last symbol left."};

struct seen {
    unsigned count;
    uint64_t time_ps, a, b;
    const char *component;
    const struct sim_trace_point *point;
};

static void see(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point, uint64_t a,
                uint64_t b)
{
    struct seen *seen = ctx;
    *seen = (struct seen){seen->count + 1, time_ps, a, b, component, point};
}

static void trace_once(void *ctx)
{
    sim_trace(ctx, "link", &tlp_sent, 0x1000, 3);
}

TEST(Trace, ReachesTheSinkWithTimeAndNumbers)
{
    struct seen seen = {0};
    sim_event_t event;
    sim_t *sim = helper_sim_create();
    sim_trace_set_sink(sim, see, &seen);
    sim_event_init(&event, trace_once, sim);
    sim_event_schedule(sim, &event, 250);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_EQ(seen.count, 1);
    EXPECT_EQ(seen.time_ps, 250);
    EXPECT_STREQ(seen.component, "link");
    EXPECT_TRUE(seen.point == &tlp_sent);
    EXPECT_EQ(seen.a, 0x1000);
    EXPECT_EQ(seen.b, 3);
    sim_destroy(sim);
}

TEST(Trace, IsSilentOnceTheSinkIsRemoved)
{
    struct seen seen = {0};
    sim_t *sim = helper_sim_create();
    sim_trace_set_sink(sim, see, &seen);
    sim_trace_set_sink(sim, NULL, NULL);
    trace_once(sim);
    EXPECT_EQ(seen.count, 0);
    sim_destroy(sim);
}
