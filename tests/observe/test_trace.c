// Verbs calls between the trace points of devices, and the counts of calls.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "sim/kernel/thread.h"
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

// A program that opens a device, rings a doorbell in ibv_post_send, and polls until the device has answered.
struct program {
    sim_event_t answer;
    sim_condition_t answered;
    struct observe_upcoming upcoming;
};

static const struct sim_trace_point doorbell = {"doorbell", NULL, 0, "a store arrived"};

static void answer_run(void *ctx)
{
    struct program *program = ctx;
    sim_trace(fixture.sim, "device", &doorbell, NULL);
    sim_condition_signal(fixture.sim, &program->answered);
}

static void call_note(struct program *program, uint32_t call)
{
    const struct journal_record record = {.call = call};
    observe_note(
        fixture.node0,
        &(struct observe_call){.thread = "t", .at_ps = sim_now_ps(fixture.sim), .upcoming = &program->upcoming},
        &record);
}

static void program_run(void *ctx)
{
    struct program *program = ctx;
    static const struct sim_wait_reason reason = {"device", "its answer", 0, 0};
    sim_thread_sleep(fixture.sim, 100);
    call_note(program, JOURNAL_OPEN_DEVICE);
    sim_event_schedule(fixture.sim, &program->answer, 50); // the store of the call that is noted next
    sim_thread_sleep(fixture.sim, 10);
    call_note(program, JOURNAL_POST_SEND);
    (void)sim_condition_wait(fixture.sim, &program->answered, SIM_NEVER_PS, &reason);
    call_note(program, JOURNAL_POLL_CQ);
}

// Opens the fixture; its trace is complete afterwards.
static void program_play(void (*run)(void *program))
{
    struct program program = {0};
    fixture_open(&fixture, &(struct observe_options){.trace_causes = true});
    sim_condition_init(&program.answered);
    sim_event_init(&program.answer, answer_run, &program);
    EXPECT_EQ(sim_thread_spawn(fixture.sim, "program", run, &program), SIM_OK);
    EXPECT_EQ(sim_run(fixture.sim), SIM_RUN_DONE);
    observe_trace_flush(fixture.observe);
}

TEST(VerbsTrace, ConnectsCallsWithWhatTheyCauseAndWhatTheyWaitFor)
{
    program_play(program_run);
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=1 cause=0\n"); // opens the device
    EXPECT_CONTAINS(fixture.traced, "110 t.verbs ibv_post_send ");
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=2 cause=1\n");           // posts
    EXPECT_CONTAINS(fixture.traced, "150 device doorbell number=4 cause=2\n"); // of the request
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=3 cause=4\n");           // polls
    fixture_close(&fixture);
}

// Until the device has answered what the call has stored.
static void command_store(struct program *program)
{
    static const struct sim_wait_reason reason = {"device", "its answer", 0, 0};
    sim_thread_sleep(fixture.sim, 100);
    call_note(program, JOURNAL_OPEN_DEVICE);
    sim_event_schedule(fixture.sim, &program->answer, 50);
    (void)sim_condition_wait(fixture.sim, &program->answered, SIM_NEVER_PS, &reason);
}

static void command_run(void *ctx)
{
    struct program *program = ctx;
    command_store(program);
    const struct journal_record record = {.call = JOURNAL_REG_MR};
    observe_note(fixture.node0,
                 &(struct observe_call){.thread = "t", .at_ps = 150, .took_ps = 50, .upcoming = &program->upcoming},
                 &record);
}

TEST(VerbsTrace, DoesNotLetACallFollowFromWhatItCausedItself)
{
    program_play(command_run);
    EXPECT_CONTAINS(fixture.traced, "150 device doorbell number=3 cause=2\n");
    EXPECT_CONTAINS(fixture.traced, "took_ps=50 number=2 cause=1\n");
    fixture_close(&fixture);
}

static void late_command_run(void *ctx)
{
    struct program *program = ctx;
    command_store(program);
    sim_thread_sleep(fixture.sim, 20);
    call_note(program, JOURNAL_REG_MR); // says that it began now
}

// Records that follow from each other in a circle would be followed for ever.
TEST(VerbsTrace, DoesNotBelieveACallThatItBeganAfterWhatItCaused)
{
    program_play(late_command_run);
    EXPECT_CONTAINS(fixture.traced, "150 device doorbell number=3 cause=2\n");
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=2 cause=1\n");
    fixture_close(&fixture);
}

struct pair {
    struct program woken;
    struct observe_upcoming waker;
};

// Wakes the other one before its own next call, which it makes long afterwards.
static void waker_run(void *ctx)
{
    struct pair *pair = ctx;
    const struct journal_record record = {.call = JOURNAL_OPEN_DEVICE};
    for (unsigned i = 0; i < 2; i++) {
        sim_thread_sleep(fixture.sim, 50);
        observe_note(fixture.node1,
                     &(struct observe_call){.thread = "w", .at_ps = sim_now_ps(fixture.sim), .upcoming = &pair->waker},
                     &record);
        sim_condition_signal(fixture.sim, &pair->woken.answered);
        sim_thread_sleep(fixture.sim, 500);
    }
}

static void woken_run(void *ctx)
{
    struct pair *pair = ctx;
    static const struct sim_wait_reason reason = {"other", "its data", 0, 0};
    call_note(&pair->woken, JOURNAL_OPEN_DEVICE);
    (void)sim_condition_wait(fixture.sim, &pair->woken.answered, SIM_NEVER_PS, &reason);
    observe_call_goes_on(fixture.node0, &pair->woken.upcoming);
    sim_event_schedule(fixture.sim, &pair->woken.answer, 50);
    sim_thread_sleep(fixture.sim, 10);
    call_note(&pair->woken, JOURNAL_POST_SEND);
}

TEST(VerbsTrace, ConnectsWhatACallCausesWithItAlsoIfAnotherThreadWokeItsOwn)
{
    struct pair pair = {0};
    fixture_open(&fixture, &(struct observe_options){.trace_causes = true});
    sim_condition_init(&pair.woken.answered);
    sim_event_init(&pair.woken.answer, answer_run, &pair.woken);
    EXPECT_EQ(sim_thread_spawn(fixture.sim, "waker", waker_run, &pair), SIM_OK);
    EXPECT_EQ(sim_thread_spawn(fixture.sim, "woken", woken_run, &pair), SIM_OK);
    EXPECT_EQ(sim_run(fixture.sim), SIM_RUN_DONE);
    observe_trace_flush(fixture.observe);
    EXPECT_CONTAINS(fixture.traced, "60 t.verbs ibv_post_send ");
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=2 cause=3\n");           // posts, woken by what followed call 3
    EXPECT_CONTAINS(fixture.traced, "100 device doorbell number=6 cause=2\n"); // not of call 4, which is later
    EXPECT_CONTAINS(fixture.traced, "600 w.verbs ibv_open_device lid=0 took_ps=0 number=4 cause=3\n");
    fixture_close(&fixture);
}

static void call_begin(struct program *program)
{
    observe_call_begins(fixture.node0, &program->upcoming);
}

// Two polls that find nothing: what the library stores in the first one arrives in it, of the second one after it.
static void polls_run(void *ctx)
{
    struct program *program = ctx;
    sim_thread_sleep(fixture.sim, 100);
    call_begin(program);
    call_note(program, JOURNAL_OPEN_DEVICE);
    for (unsigned i = 0; i < 2; i++) {
        call_begin(program);
        sim_event_schedule(fixture.sim, &program->answer, i == 0 ? 50 : 90);
        sim_thread_sleep(fixture.sim, 70);
        observe_call_found_nothing(fixture.node0, "t", &program->upcoming);
    }
    call_begin(program);
    sim_thread_sleep(fixture.sim, 60);
    call_note(program, JOURNAL_POLL_CQ);
}

TEST(VerbsTrace, HasAPollThatFoundNothingIfSomethingFollowsFromItAtOnce)
{
    program_play(polls_run);
    EXPECT_CONTAINS(fixture.traced, "100 t.verbs ibv_open_device ");
    EXPECT_CONTAINS(fixture.traced, "150 device doorbell number=3 cause=2\n");
    EXPECT_CONTAINS(fixture.traced, "170 t.verbs ibv_poll_cq took_ps=70 number=2 cause=1\n");
    EXPECT_CONTAINS(fixture.traced, "260 device doorbell number=6 cause=2\n"); // of poll 4, which is in no record
    EXPECT_CONTAINS(fixture.traced, "took_ps=0 number=5 cause=2\n");           // of poll 5, which found something
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
