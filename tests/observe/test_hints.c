// Hints of a summary: each is given from its limit on, and each part of what it depends on decides by itself.
#include <infiniband/verbs.h>
#include <stdio.h>

#include "fixture.h"
#include "sim/kernel/sim.h"
#include "tests/shim/test.h"

enum { MANY = 16, CQ = 2, ONE_ENTRY_CQ = 5, OTHER_QP = 7 };
static const char all_signaled[] = "hint: every send request asks for a completion;",
                  one_send[] = "hint: at most one send request", one_receive[] = "hint: at most one receive request",
                  one_entry[] = "hint: the completion queue has one entry;",
                  naks[] = "hint: messages came 1 times before a receive request was there",
                  retries[] = "hint: requests were sent again 1 times";

static struct fixture fixture;

static void begin(void)
{
    fixture_open(&fixture, &(struct observe_options){.summary = true});
    fixture_connect_both(&fixture);
}

static const char *summary(void)
{
    return fixture_written(&fixture, observe_summary_print);
}

static void note(const struct journal_record *record)
{
    fixture_note(fixture.node0, 2000, record);
}

static void send_posted(uint32_t qp, bool signaled)
{
    note(&(struct journal_record){.call = JOURNAL_POST_SEND,
                                  .send = {.qp = qp, .opcode = IBV_WR_SEND, .bytes = 8, .signaled = signaled}});
}

static void receive_posted(void)
{
    note(&(struct journal_record){.call = JOURNAL_POST_RECV, .receive = {.queue = 1, .bytes = 8}});
}

static void completed(uint32_t qp, bool is_receive)
{
    note(&(struct journal_record){
        .call = JOURNAL_POLL_CQ,
        .completion = {
            .cq = CQ, .qp = qp, .opcode = is_receive ? IBV_WC_RECV : IBV_WC_SEND, .is_receive = is_receive}});
}

// So many sends, of which so many are under way at once, each signaled or all but the first.
static void sends(unsigned count, unsigned at_once, bool all)
{
    begin();
    for (unsigned i = 0; i < count; i++) {
        send_posted(1, all || i != 0);
        if (i + 1 >= at_once) {
            completed(1, false);
        }
    }
}

TEST(Hints, ThatEverySendAsksForACompletionNeedsManyOfWhichSeveralAreUnderWay)
{
    sends(MANY, 2, true);
    EXPECT_CONTAINS(summary(), all_signaled);
    EXPECT_LACKS(summary(), one_send);
    fixture_close(&fixture);
    sends(MANY - 1, 2, true);
    EXPECT_LACKS(summary(), all_signaled);
    fixture_close(&fixture);
    sends(MANY, 2, false);
    EXPECT_LACKS(summary(), all_signaled);
    fixture_close(&fixture);
    sends(MANY, 1, true);
    EXPECT_LACKS(summary(), all_signaled);
    EXPECT_CONTAINS(summary(), one_send);
    fixture_close(&fixture);
    sends(MANY - 1, 1, true);
    EXPECT_LACKS(summary(), one_send);
    fixture_close(&fixture);
}

// So many receive requests, of which so many are there at once.
static void receives(unsigned count, unsigned at_once)
{
    begin();
    for (unsigned i = 0; i < count; i++) {
        receive_posted();
        if (i + 1 >= at_once) {
            completed(1, true);
        }
    }
}

TEST(Hints, ThatReceivesArePostedOneByOneNeedsMany)
{
    receives(MANY, 1);
    EXPECT_CONTAINS(summary(), one_receive);
    fixture_close(&fixture);
    receives(MANY - 1, 1);
    EXPECT_LACKS(summary(), one_receive);
    fixture_close(&fixture);
    receives(MANY, 2);
    EXPECT_LACKS(summary(), one_receive);
    fixture_close(&fixture);
}

// A queue pair on a completion queue of so many entries.
static void sends_on(uint32_t entries, unsigned count)
{
    begin();
    const struct journal_record made[] = {
        {.call = JOURNAL_CREATE_CQ, .cq = {.handle = ONE_ENTRY_CQ, .entries = entries}},
        {.call = JOURNAL_CREATE_QP,
         .qp = {.number = OTHER_QP, .type = IBV_QPT_RC, .send_cq = ONE_ENTRY_CQ, .receive_cq = 3, .max_send = 64}}};
    note(&made[0]);
    note(&made[1]);
    for (unsigned i = 0; i < count; i++) {
        send_posted(OTHER_QP, true);
        completed(OTHER_QP, false);
    }
}

TEST(Hints, ThatACompletionQueueHasOneEntryNeedsManyCompletions)
{
    sends_on(1, MANY);
    EXPECT_CONTAINS(summary(), one_entry);
    fixture_close(&fixture);
    sends_on(1, MANY - 1);
    EXPECT_LACKS(summary(), one_entry);
    fixture_close(&fixture);
    sends_on(2, MANY);
    EXPECT_LACKS(summary(), one_entry);
    fixture_close(&fixture);
}

static void adapter_did(const char *what)
{
    static const struct sim_trace_field fields[] = {{.name = "qp"}};
    const struct sim_trace_point point = {.name = what, .fields = fields, .field_count = 1};
    const uint64_t values[] = {1};
    sim_trace(fixture.sim, "node0.hca", &point, values);
}

TEST(Hints, NaksAndRetriesAreToldOfEachByItself)
{
    sends(1, 1, true);
    EXPECT_LACKS(summary(), naks);
    EXPECT_LACKS(summary(), retries);
    adapter_did("rnr_nak");
    EXPECT_CONTAINS(summary(), naks);
    EXPECT_LACKS(summary(), retries);
    EXPECT_CONTAINS(summary(), "RNR NAKs sent 1, retries 0");
    fixture_close(&fixture);
    sends(1, 1, true);
    adapter_did("retry");
    adapter_did("rnr"); // other names that begin alike
    adapter_did("retry_later");
    EXPECT_LACKS(summary(), naks);
    EXPECT_CONTAINS(summary(), retries);
    EXPECT_CONTAINS(summary(), "RNR NAKs sent 0, retries 1");
    fixture_close(&fixture);
}

TEST(Hints, ALibrarysCopiesAreToldOfFromManyOnWithItsNameAndItsSetting)
{
    static const struct {
        const char *poster, *text;
    } libraries[] = {{"libuct_ib.so.0", "buffers of UCX, which"},
                     {"mca_btl_openib.", "buffers of Open MPI's openib, which"},
                     {"libfabric.so.1", "buffers of libfabric, which"}};
    static const char *const settings[] = {"UCX_RNDV_THRESH", "btl_openib_eager_limit", "FI_OFI_RXM_BUFFER_SIZE"};
    for (unsigned i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        begin();
        for (unsigned count = 0; count < MANY; count++) {
            EXPECT_LACKS(summary(), "hint: eager copies");
            struct journal_record record = {.call = JOURNAL_POST_RECV, .receive = {.queue = 1, .bytes = 8192}};
            (void)snprintf(record.receive.poster, sizeof record.receive.poster, "%s", libraries[i].poster);
            note(&record);
            completed(1, true);
        }
        EXPECT_CONTAINS(summary(), "hint: eager copies: 16 messages");
        EXPECT_CONTAINS(summary(), libraries[i].text);
        EXPECT_CONTAINS(summary(), settings[i]);
        fixture_close(&fixture);
    }
}
