// Trace points.
#include "sim/kernel/trace.h"
#include "helpers.h"

static const struct sim_trace_field fields[] = {{"address", SIM_TRACE_HEX, NULL}, {"bytes", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point tlp_sent = {"tlp_sent", fields, 2, "The last symbol left."};

struct seen {
    unsigned count;
    uint64_t time_ps, a, b;
    const char *component;
    const struct sim_trace_point *point;
};

static void see(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                const uint64_t *values)
{
    struct seen *seen = ctx;
    *seen = (struct seen){seen->count + 1, time_ps, values[0], values[1], component, point};
}

static void trace_once(void *ctx)
{
    const uint64_t values[] = {0x1000, 3};
    sim_trace(ctx, "link", &tlp_sent, values);
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
    EXPECT_EQ(seen.point, &tlp_sent);
    EXPECT_EQ(seen.a, 0x1000);
    EXPECT_EQ(seen.b, 3);
    sim_destroy(sim);
}

TEST(Trace, IsSilentOnceTheSinkIsRemoved)
{
    struct seen seen = {0};
    sim_t *sim = helper_sim_create();
    sim_trace_set_sink(sim, see, &seen);
    EXPECT_TRUE(sim_trace_wanted(sim));
    sim_trace_set_sink(sim, NULL, NULL);
    EXPECT_FALSE(sim_trace_wanted(sim));
    trace_once(sim);
    EXPECT_EQ(seen.count, 0);
    sim_destroy(sim);
}
