// The workload delivery without a fault: what it counts, by DMA and by PIO.
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"

#define MESSAGES 20

struct outcome {
    struct plat_result result;
    struct plat_point point;
    uint64_t requests, completed, failed, received, arrived, torn, missing;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    ((struct outcome *)ctx)->point = *point;
}

static void note_counter(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *o = ctx;
    const struct {
        const char *name;
        uint64_t *sum;
    } sums[] = {{"requests", &o->requests}, {"completed", &o->completed}, {"failed", &o->failed},
                {"received", &o->received}, {"arrived", &o->arrived},     {"torn", &o->torn},
                {"missing", &o->missing}};
    for (size_t i = 0; strstr(component, ".program") != NULL && i < sizeof sums / sizeof sums[0]; i++) {
        *sums[i].sum += strcmp(desc->name, sums[i].name) == 0 ? value : 0;
    }
}

// Over three cables: the last packets are under way when the node has ended.
static struct outcome deliver(enum scn_method method)
{
    struct scn_scenario *scenario = platform_fixture_line(4);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_DELIVERY, method);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point, .counter = note_counter};
    series->peer = 3;
    series->iterations = MESSAGES;
    platform_fixture_size_add(series, 1024, 1);
    for (unsigned i = 0; i < 4; i++) {
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
    }
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    platform_fixture_free(scenario);
    return outcome;
}

TEST(Delivery, FindsEveryMessageOfEachMethod)
{
    static const enum scn_method methods[] = {SCN_METHOD_REGISTER, SCN_METHOD_CHAIN_HOST, SCN_METHOD_CHAIN_BOARD,
                                              SCN_METHOD_PIO};
    for (unsigned i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        TEST_TRACE("%s", scn_method_name(methods[i]));
        struct outcome o = deliver(methods[i]);
        EXPECT_EQ(o.requests, MESSAGES);
        EXPECT_EQ(o.completed, MESSAGES);
        EXPECT_EQ(o.received, MESSAGES);
        EXPECT_EQ(o.arrived, MESSAGES);
        EXPECT_EQ(o.failed + o.torn + o.missing, 0);
        EXPECT_EQ(o.point.operations, MESSAGES);
    }
}
