// Verbs calls between the trace points of devices, and the counts of calls.
#include <infiniband/verbs.h>
#include <stdio.h>
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

TEST(VerbsTrace, ShowsTheRegionThatEndsAsItShowedItsBeginning)
{
    struct journal_record record = {.call = JOURNAL_REG_MR,
                                    .mr = {.handle = 7, .address = 0x5000, .bytes = 4096, .lkey = 0x11, .rkey = 0x22}};
    fixture_open(&fixture, &(struct observe_options){0});
    fixture_note(fixture.node0, 100, &record);
    record.call = JOURNAL_DEREG_MR;
    fixture_note(fixture.node0, 200, &record);
    observe_trace_flush(fixture.observe);
    EXPECT_CONTAINS(fixture.traced, "100 t.verbs ibv_reg_mr handle=7 address=20480 length_bytes=4096 lkey=17 rkey=34");
    EXPECT_CONTAINS(fixture.traced,
                    "200 t.verbs ibv_dereg_mr handle=7 address=20480 length_bytes=4096 lkey=17 rkey=34");
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

// A receive request that code of that file posts, and a message that comes into it.
static void receive_of(const char *file, uint64_t bytes)
{
    struct journal_record record = {.call = JOURNAL_POST_RECV, .receive = {.queue = 1, .wr_id = 3, .bytes = 4096}};
    for (unsigned i = 0; i + 1 < sizeof record.receive.poster && file[i] != '\0'; i++) {
        record.receive.poster[i] = file[i];
    }
    fixture_connect(fixture.node0, 1, 2, 0x100);
    fixture_note(fixture.node0, 2000, &record);
    record = (struct journal_record){
        .call = JOURNAL_POLL_CQ,
        .completion = {.cq = 3, .qp = 1, .wr_id = 3, .opcode = IBV_WC_RECV, .bytes = bytes, .is_receive = true}};
    fixture_note(fixture.node0, 2100, &record);
}

// The file's name is kept up to its 15th character.
TEST(VerbsSummary, NamesTheLibraryWhoseBuffersMessagesCameInto)
{
    static const struct {
        const char *file, *library;
    } posters[] = {{"libuct_ib.so.0.0.0", "UCX"},
                   {"mca_btl_openib.so", "Open MPI's openib"},
                   {"libfabric.so.1.18.1", "libfabric"},
                   {"libuct.so.0", NULL},
                   {"a.out", NULL}};
    for (unsigned i = 0; i < sizeof posters / sizeof posters[0]; i++) {
        char expected[128];
        TEST_TRACE("posted by %s", posters[i].file);
        fixture_open(&fixture, &(struct observe_options){.summary = true});
        receive_of(posters[i].file, 100 + i);
        if (posters[i].library != NULL) {
            snprintf(expected, sizeof expected, "eager: [{library: %s, count: 1, bytes: %u}]", posters[i].library,
                     100 + i);
            EXPECT_CONTAINS(summary_of(fixture.observe), expected);
        } else {
            EXPECT_LACKS(summary_of(fixture.observe), "eager");
        }
        fixture_close(&fixture);
    }
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
