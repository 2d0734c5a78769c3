// Trace events for Perfetto: lanes, flows, and what is counted. tests/events checks whole files against the format.
#include <stdlib.h>
#include <string.h>

#include "sim/report/events_trace.h"
#include "tests/shim/test.h"

static char *text_of(events_t *events, events_trace_t *trace)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    EXPECT_EQ(events != NULL ? events_write(events, out) : events_trace_write(trace, out), SIM_OK);
    fclose(out);
    events_destroy(events);
    events_trace_destroy(trace);
    return text;
}

static events_slice_t slice_add(events_t *events, uint32_t lane, uint64_t begin_ps, uint64_t end_ps)
{
    return events_slice_add(
        events,
        &(struct events_slice){.lane = lane, .begin_ps = begin_ps, .end_ps = end_ps, .name = "TLP", .category = "tlp"});
}

TEST(Events, GiveSlicesThatOverlapThreadsOfTheirOwn)
{
    events_t *events;
    ASSERT_EQ(events_create(&events), SIM_OK);
    uint32_t link = events_lane(events, "node0", "link"), other = events_lane(events, "node1", "link");
    slice_add(events, link, 0, 2000000);
    slice_add(events, link, 1000000, 3000001);
    slice_add(events, link, 2000000, 4000000);
    slice_add(events, other, 0, 1);
    char *text = text_of(events, NULL);
    EXPECT_CONTAINS(text, "\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"link (2)\"}");
    EXPECT_CONTAINS(text, "\"ts\":0.000000,\"pid\":1,\"tid\":1,\"dur\":2.000000");
    EXPECT_CONTAINS(text, "\"ts\":1.000000,\"pid\":1,\"tid\":2,\"dur\":2.000001");
    EXPECT_CONTAINS(text, "\"ts\":2.000000,\"pid\":1,\"tid\":1,\"dur\":2.000000");
    EXPECT_CONTAINS(text, "\"ts\":0.000000,\"pid\":2,\"tid\":3,\"dur\":0.000001");
    free(text);
}

TEST(Events, LeaveACauseAndEnterAnEffectWhereBothAre)
{
    events_t *events;
    ASSERT_EQ(events_create(&events), SIM_OK);
    uint32_t core = events_lane(events, "node0", "core"), link = events_lane(events, "node0", "link");
    events_slice_t call = slice_add(events, core, 100, 299), store = slice_add(events, link, 200, 400);
    events_slice_t wait = slice_add(events, core, 300, 700), arrival = slice_add(events, link, 600, 600);
    events_flow_add(events, call, store);   // within the call
    events_flow_add(events, arrival, wait); // ends a wait
    events_flow_add(events, wait, call);    // not possible
    char *text = text_of(events, NULL);
    EXPECT_CONTAINS(text,
                    "\"ph\":\"s\",\"ts\":0.000200,\"pid\":1,\"tid\":1,\"name\":\"cause\",\"cat\":\"cause\",\"id\":1}");
    EXPECT_CONTAINS(text, "\"ph\":\"f\",\"ts\":0.000200,\"pid\":1,\"tid\":2,");
    EXPECT_CONTAINS(text, "\"ph\":\"s\",\"ts\":0.000600,\"pid\":1,\"tid\":2,");
    EXPECT_CONTAINS(text, "\"ph\":\"f\",\"ts\":0.000600,\"pid\":1,\"tid\":1,");
    EXPECT_LACKS(text, "\"id\":3");
    free(text);
}

// --- of a trace -----------------------------------------------------------------------------------------------------

static const char *const kinds[] = {"MRd", "CplD"};
static const struct sim_trace_field fields[] = {{"kind", SIM_TRACE_NAME, kinds},
                                                {"length_bytes", SIM_TRACE_DECIMAL, NULL},
                                                {"requester", SIM_TRACE_HEX, NULL},
                                                {"tag", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point sent = {"tlp_sent", fields, 4, ""}, received = {"tlp_received", fields, 4, ""};

// kind: an index of `kinds`.
static void tlp_add(events_trace_t *trace, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                    uint64_t kind, uint64_t bytes, uint32_t number, uint32_t cause)
{
    const struct sim_trace_record record = {.time_ps = time_ps,
                                            .component = component,
                                            .point = point,
                                            .values = (const uint64_t[]){kind, bytes, 0x100, 5},
                                            .number = number,
                                            .cause = cause};
    events_trace_add(trace, "s", &record, cause);
}

// A read of 256 B that is answered by two completions.
static char *read_and_two_answers(void)
{
    events_trace_t *trace;
    EXPECT_EQ(events_trace_create(&trace), SIM_OK);
    tlp_add(trace, 100, "node0.slot.1", &sent, 0, 256, 1, 0);
    tlp_add(trace, 150, "node0.slot.0", &received, 0, 256, 2, 1);
    tlp_add(trace, 200, "node0.slot.0", &sent, 1, 128, 3, 2);
    tlp_add(trace, 240, "node0.slot.0", &sent, 1, 128, 4, 2);
    tlp_add(trace, 260, "node0.slot.1", &received, 1, 128, 5, 3);
    tlp_add(trace, 300, "node0.slot.1", &received, 1, 128, 6, 4);
    return text_of(NULL, trace);
}

TEST(EventsOfATrace, LetATlpLastUntilItIsReceived)
{
    char *text = read_and_two_answers();
    EXPECT_CONTAINS(text, "\"ts\":0.000100,\"pid\":1,\"tid\":1,\"dur\":0.000050,\"name\":\"tlp_sent MRd\"");
    EXPECT_CONTAINS(text, "\"ts\":0.000150,\"pid\":1,\"tid\":2,\"dur\":0.000000,\"name\":\"tlp_received MRd\"");
    EXPECT_CONTAINS(text, "\"args\":{\"number\":5,\"cause\":3,\"kind\":\"CplD\",\"length_bytes\":128,"
                          "\"requester\":\"0x100\",\"tag\":5}");
    free(text);
}

TEST(EventsOfATrace, CountWhatIsInFlightAndWhatIsOutstanding)
{
    static const char *const expected[] = {
        "\"ts\":0.000100,\"pid\":1,\"tid\":1,\"name\":\"node0.slot.1 in flight\",\"args\":{\"packets\":1}",
        "\"ts\":0.000150,\"pid\":1,\"tid\":1,\"name\":\"node0.slot.1 in flight\",\"args\":{\"packets\":0}",
        "\"name\":\"node0.slot.0 in flight\",\"args\":{\"packets\":2}",
        "\"name\":\"node0.slot.0 data in flight\",\"args\":{\"bytes\":256}",
        "\"ts\":0.000300,\"pid\":1,\"tid\":2,\"name\":\"node0.slot.0 data in flight\",\"args\":{\"bytes\":0}",
        "\"ts\":0.000100,\"pid\":1,\"tid\":1,\"name\":\"node0.slot.1 reads outstanding\",\"args\":{\"bytes\":256}",
        "\"ts\":0.000260,\"pid\":1,\"tid\":1,\"name\":\"node0.slot.1 reads outstanding\",\"args\":{\"bytes\":128}",
        "\"ts\":0.000300,\"pid\":1,\"tid\":1,\"name\":\"node0.slot.1 reads outstanding\",\"args\":{\"bytes\":0}"};
    char *text = read_and_two_answers();
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        EXPECT_CONTAINS(text, expected[i]);
    }
    free(text);
}

// --- of programs ----------------------------------------------------------------------------------------------------

static const char *const opcodes[] = {"SEND", "RECV"};
static const struct sim_trace_field call_fields[] = {{"qp", SIM_TRACE_DECIMAL, NULL},
                                                     {"wr_id", SIM_TRACE_HEX, NULL},
                                                     {"opcode", SIM_TRACE_NAME, opcodes},
                                                     {"took_ps", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point post = {"ibv_post_send", call_fields, 4, ""},
                                    poll = {"ibv_poll_cq", call_fields, 4, ""};

static void call_add(events_trace_t *trace, uint64_t time_ps, const char *thread, const struct sim_trace_point *point,
                     uint64_t wr_id, uint64_t opcode)
{
    const struct sim_trace_record record = {
        .time_ps = time_ps, .component = thread, .point = point, .values = (const uint64_t[]){1, wr_id, opcode, 50}};
    events_trace_add(trace, "s", &record, 0);
}

// Two requests of one thread, of which the second asks for a completion, which another thread polls.
TEST(EventsOfATrace, CountTheSendsOfAQueuePairThatHaveNotCompleted)
{
    events_trace_t *trace;
    ASSERT_EQ(events_trace_create(&trace), SIM_OK);
    call_add(trace, 100, "node0.process1.thread0.verbs", &post, 7, 0);
    call_add(trace, 200, "node0.process1.thread0.verbs", &post, 8, 0);
    call_add(trace, 300, "node0.process1.thread1.verbs", &poll, 8, 1); // of a receive
    call_add(trace, 400, "node0.process1.thread1.verbs", &poll, 8, 0);
    char *text = text_of(NULL, trace);
    EXPECT_CONTAINS(text, "\"ts\":0.000050,\"pid\":1,\"tid\":1,\"dur\":0.000050,\"name\":\"ibv_post_send SEND\"");
    EXPECT_CONTAINS(
        text, "\"ts\":0.000150,\"pid\":1,\"tid\":1,\"name\":\"node0.process1 qp 1 sends\",\"args\":{\"requests\":2}");
    EXPECT_CONTAINS(
        text, "\"ts\":0.000400,\"pid\":1,\"tid\":1,\"name\":\"node0.process1 qp 1 sends\",\"args\":{\"requests\":0}");
    EXPECT_LACKS(text, "\"ts\":0.000300,\"pid\":1,\"tid\":1,\"name\":\"node0.process1 qp 1 sends\"");
    free(text);
}
