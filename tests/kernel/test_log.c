// Log lines.
#include "sim/kernel/log.h"

#include <stdio.h>

#include "helpers.h"

struct lines {
    unsigned count;
    enum sim_log_level level;
    char last[2048];
};

static void keep(void *ctx, enum sim_log_level level, const char *line)
{
    struct lines *lines = ctx;
    lines->count++;
    lines->level = level;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static void log_from_event(void *ctx)
{
    sim_log(ctx, SIM_LOG_INFO, "node0.link", "%d TLPs", 3);
}

TEST(Log, PrefixesLinesWithTimeAndComponent)
{
    struct lines lines = {0};
    sim_event_t event;
    sim_t *sim = helper_sim_create();
    sim_log_set_sink(sim, SIM_LOG_INFO, keep, &lines);
    sim_event_init(&event, log_from_event, sim);
    sim_event_schedule(sim, &event, 12345);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_STREQ(lines.last, "12.345 ns node0.link: 3 TLPs");
    EXPECT_EQ(lines.level, SIM_LOG_INFO);
    sim_destroy(sim);
}

TEST(Log, DropsLinesAboveItsLevel)
{
    struct lines lines = {0};
    sim_t *sim = helper_sim_create();
    sim_log_set_sink(sim, SIM_LOG_WARN, keep, &lines);
    sim_log(sim, SIM_LOG_INFO, "c", "quiet");
    sim_log(sim, SIM_LOG_DEBUG, "c", "quieter");
    EXPECT_EQ(lines.count, 0);
    sim_log(sim, SIM_LOG_WARN, "c", "loud");
    EXPECT_STREQ(lines.last, "0 ns c: loud");
    sim_destroy(sim);
}

TEST(Log, CountsWarningsAndErrorsWhetherShownOrNot)
{
    sim_t *sim = helper_sim_create();
    sim_log_set_sink(sim, SIM_LOG_ERROR, NULL, NULL);
    sim_log(sim, SIM_LOG_INFO, "c", "fine");
    sim_log(sim, SIM_LOG_WARN, "c", "odd");
    sim_log(sim, SIM_LOG_ERROR, "c", "bad");
    EXPECT_EQ(sim_log_warnings(sim), 2);
    sim_destroy(sim);
}

TEST(Log, CutsLongLines)
{
    struct lines lines = {0};
    char component[1500];
    sim_t *sim = helper_sim_create();
    memset(component, 'c', sizeof component - 1);
    component[sizeof component - 1] = '\0';
    sim_log_set_sink(sim, SIM_LOG_WARN, keep, &lines);
    sim_log(sim, SIM_LOG_WARN, "c", "%s", component);
    EXPECT_EQ(strlen(lines.last), 1023);
    sim_log(sim, SIM_LOG_WARN, component, "text");
    EXPECT_EQ(lines.count, 2);
    sim_destroy(sim);
}
