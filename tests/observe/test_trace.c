// Verbs calls between the trace points of devices, and the counts of calls.
#include <infiniband/verbs.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static struct fixture fixture;

static void post(observe_process_t *process, uint64_t at_ps, uint64_t wr_id, bool signaled)
{
    const struct journal_record record = {
        .call = JOURNAL_POST_SEND,
        .send = {.qp = 1, .wr_id = wr_id, .opcode = IBV_WR_SEND, .bytes = 64, .signaled = signaled}};
    fixture_note(process, at_ps, &record);
}

static void complete(observe_process_t *process, uint64_t at_ps, uint64_t wr_id)
{
    const struct journal_record record = {.call = JOURNAL_POLL_CQ,
                                          .completion = {.cq = 2, .qp = 1, .wr_id = wr_id, .opcode = IBV_WC_SEND}};
    fixture_note(process, at_ps, &record);
}

TEST(VerbsTrace, IsInTheOrderOfSimulatedTimeHoweverTheCallsBecomeKnown)
{
    fixture_open(&fixture, &(struct observe_options){0});
    post(fixture.node0, 300, 1, true);
    post(fixture.node1, 100, 2, true);
    post(fixture.node0, 200, 3, true);
    post(fixture.node1, 200, 4, true);
    EXPECT_EQ(fixture.traced[0], '\0'); // their times have not come
    observe_trace_flush(fixture.observe);
    const char *first = strstr(fixture.traced, "wr_id=2"), *second = strstr(fixture.traced, "wr_id=3");
    const char *third = strstr(fixture.traced, "wr_id=4"), *last = strstr(fixture.traced, "wr_id=1");
    ASSERT_NOT_NULL(first);
    ASSERT_NOT_NULL(second);
    ASSERT_NOT_NULL(third);
    ASSERT_NOT_NULL(last);
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, last);
    EXPECT_CONTAINS(fixture.traced, "100 t.verbs ibv_post_send qp=1 wr_id=2 opcode=SEND length_bytes=64");
    fixture_close(&fixture);
}

static char *summary_of(observe_t *observe)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    observe_summary_yaml(observe, out);
    fclose(out);
    return text;
}

// A completion also completes earlier requests that asked for none.
TEST(VerbsSummary, CountsTheMostRequestsUnderWay)
{
    fixture_open(&fixture, &(struct observe_options){.summary = true});
    fixture_connect(fixture.node0, 1, 2, 0x100);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 4; i++) {
            post(fixture.node0, 2000 + round * 100 + i, i, i == 3);
        }
        complete(fixture.node0, 2050 + round * 100, 3);
    }
    EXPECT_CONTAINS(summary_of(fixture.observe),
                    "sends: {SEND: {count: 12, bytes: 768}}, signaled: 3, send_completions: 3");
    EXPECT_CONTAINS(summary_of(fixture.observe), "send_depth: 4,");
    fixture_close(&fixture);
}

TEST(VerbsSummary, IsOfProgramsThatUseADeviceOnly)
{
    fixture_open(&fixture, &(struct observe_options){.summary = true});
    fixture_connect(fixture.node1, 2, 1, 0x100);
    EXPECT_LACKS(summary_of(fixture.observe), "node: node0");
    EXPECT_CONTAINS(summary_of(fixture.observe), "node: node1");
    fixture_close(&fixture);
}

TEST(Times, AreWrittenForPeople)
{
    static const struct {
        uint64_t ps;
        const char *text;
    } times[] = {{0, "0 ps"},           {999, "999 ps"},      {1000, "1 ns"},
                 {12300000, "12.3 us"}, {2000000000, "2 ms"}, {1500000000000, "1.5 s"}};
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[48];
        observe_time_print(times[i].ps, text, sizeof text);
        EXPECT_STREQ(text, times[i].text);
    }
}
