// Which process and queue pair the numbers of a summary belong to.
#include <infiniband/verbs.h>
#include <stdio.h>

#include "fixture.h"
#include "sim/kernel/sim.h"
#include "tests/shim/test.h"

static struct fixture fixture;

static void summarised(void)
{
    fixture_open(&fixture, &(struct observe_options){.summary = true});
    fixture_connect_both(&fixture);
}

static const char *summary(void)
{
    return fixture_written(&fixture, observe_summary_yaml);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

TEST(VerbsSummary, OfAProcessEndsWithIt)
{
    sim_event_t end;
    summarised();
    observe_process_end(fixture.node0, 5000);
    sim_event_init(&end, nothing, NULL);
    sim_event_schedule_at(fixture.sim, &end, 9000);
    EXPECT_EQ(sim_run(fixture.sim), SIM_RUN_DONE);
    EXPECT_CONTAINS(summary(), "node: node0\n    process: 1\n    lived_ps: 5000\n");
    EXPECT_CONTAINS(summary(), "node: node1\n    process: 1\n    lived_ps: 9000\n");
    fixture_close(&fixture);
}

TEST(VerbsSummary, CountsTheRetriesOfItsOwnNode)
{
    static const struct sim_trace_field fields[] = {{.name = "qp"}};
    static const struct sim_trace_point retry = {.name = "retry", .fields = fields, .field_count = 1};
    const uint64_t values[] = {1};
    summarised();
    sim_trace(fixture.sim, "node10.hca", &retry, values); // node1 is the beginning of its name
    EXPECT_LACKS(summary(), "retries: 1");
    sim_trace(fixture.sim, "node1.hca", &retry, values);
    EXPECT_CONTAINS(summary(), "retries: 1");
    EXPECT_LACKS(summary(), "retries: 2");
    fixture_close(&fixture);
}

TEST(VerbsSummary, NamesQueuePairsWithoutTrafficInOneLine)
{
    summarised();
    const char *text = fixture_written(&fixture, observe_summary_print);
    EXPECT_CONTAINS(text, "  sent nothing and completed no receive request: qp 1\n");
    EXPECT_LACKS(text, "completions of sends");
    fixture_close(&fixture);
}

// The message is of the library that posted its buffer, which it takes from a shared queue.
TEST(VerbsSummary, CountsMessagesInTheBuffersOfALibrarysSharedQueue)
{
    const struct journal_record records[] = {
        {.call = JOURNAL_CREATE_SRQ, .object = {.handle = 4}},
        {.call = JOURNAL_CREATE_QP,
         .qp = {.number = 6, .type = IBV_QPT_RC, .send_cq = 2, .receive_cq = 3, .srq = 4 + 1}},
        {.call = JOURNAL_POST_SRQ_RECV, .receive = {.queue = 4, .bytes = 8192, .poster = "libuct_ib.so.0"}},
        {.call = JOURNAL_POLL_CQ,
         .completion = {.cq = 2, .qp = 6, .opcode = IBV_WC_RECV, .bytes = 1000, .is_receive = true}}};
    summarised();
    for (unsigned i = 0; i < sizeof records / sizeof records[0]; i++) {
        fixture_note(fixture.node0, 2000, &records[i]);
    }
    EXPECT_CONTAINS(summary(), "eager: [{library: UCX, count: 1, bytes: 1000}]");
    fixture_close(&fixture);
}
