// Mistakes that a real device cannot see: what is reported, and what lies one step beside it and is not.
#include <infiniband/verbs.h>

#include "fixture.h"
#include "tests/shim/test.h"

#define ENTRIES 16u // of the fixture's completion queue

static struct fixture fixture;

static void checked(void)
{
    fixture_open(&fixture, &(struct observe_options){.check = true});
    fixture_connect(fixture.node0, 1, 2, 0x100);
}

static void receive_post(uint64_t wr_id, uint64_t address)
{
    const struct journal_record record = {.call = JOURNAL_POST_RECV,
                                          .receive = {.queue = 1, .wr_id = wr_id, .address = address, .bytes = 64}};
    fixture_note(fixture.node0, 2000, &record);
}

// Requests that ask for a completion each.
static void sends_post(unsigned count)
{
    const struct journal_record record = {
        .call = JOURNAL_POST_SEND,
        .send = {.qp = 1, .opcode = IBV_WR_SEND, .address = 0x1000, .bytes = 64, .signaled = true}};
    for (unsigned i = 0; i < count; i++) {
        fixture_note(fixture.node0, 2000, &record);
    }
}

// --- receive buffers -------------------------------------------------------------------------------------------------

TEST(Checks, AcceptReceiveBuffersSideBySide)
{
    checked();
    receive_post(1, 0x1000);
    receive_post(2, 0x1040);
    receive_post(3, 0x0fc0);
    EXPECT_STREQ(fixture.lines, "");
    fixture_close(&fixture);
}

TEST(Checks, ReportReceiveBuffersWithOneByteInCommon)
{
    checked();
    receive_post(1, 0x1000);
    receive_post(2, 0x103f);
    EXPECT_EQ(observe_findings(fixture.observe), 1);
    EXPECT_CONTAINS(fixture.lines, "qp 1: the receive requests wr_id 0x1 and 0x2 have memory in common");
    fixture_close(&fixture);
}

// --- completion queues -----------------------------------------------------------------------------------------------

TEST(Checks, ReportTheFirstRequestForWhichACompletionQueueHasNoEntry)
{
    checked();
    sends_post(ENTRIES);
    EXPECT_STREQ(fixture.lines, "");
    sends_post(1);
    EXPECT_CONTAINS(fixture.lines, "completion queue 2 may be overrun: it has 16 entries, and 17 requests under way");
    fixture_close(&fixture);
}

TEST(Checks, CountTheEntriesOfAResizedCompletionQueue)
{
    const struct journal_record resize = {.call = JOURNAL_RESIZE_CQ, .cq = {.handle = 2, .entries = 2 * ENTRIES}};
    checked();
    fixture_note(fixture.node0, 1500, &resize);
    sends_post(2 * ENTRIES);
    EXPECT_STREQ(fixture.lines, "");
    sends_post(1);
    EXPECT_CONTAINS(fixture.lines, "completion queue 2 may be overrun: it has 32 entries, and 33 requests under way");
    fixture_close(&fixture);
}

// IBA 10.3.1: a reset removes the requests of the queue pair, so they never complete.
TEST(Checks, CountNoCompletionsOfRequestsThatAResetRemoved)
{
    checked();
    sends_post(ENTRIES);
    fixture_state_set(fixture.node0, 2500, IBV_QPS_RESET);
    fixture_state_set(fixture.node0, 2600, IBV_QPS_RTS);
    sends_post(ENTRIES);
    EXPECT_STREQ(fixture.lines, "");
    sends_post(1);
    EXPECT_EQ(observe_findings(fixture.observe), 1);
    fixture_close(&fixture);
}

// --- posts to a queue pair that failed -------------------------------------------------------------------------------

TEST(Checks, ReportThePostsOfASecondFailureAfterAReset)
{
    checked();
    fixture_state_set(fixture.node0, 1500, IBV_QPS_ERR);
    sends_post(2);
    EXPECT_EQ(observe_findings(fixture.observe), 1);
    fixture_state_set(fixture.node0, 2500, IBV_QPS_RESET);
    fixture_state_set(fixture.node0, 2600, IBV_QPS_ERR);
    sends_post(2);
    EXPECT_EQ(observe_findings(fixture.observe), 2);
    fixture_close(&fixture);
}

// --- deregistration --------------------------------------------------------------------------------------------------

// A region of the same memory on another device, which has a queue pair of its own.
TEST(Checks, CompareARegionWithTheRequestsOfItsOwnDevice)
{
    const struct journal_record opened = {
        .call = JOURNAL_OPEN_DEVICE, .context = 1, .device = {.device = "tca0", .lid = 1}};
    const struct journal_record made = {
        .call = JOURNAL_REG_MR,
        .context = 1,
        .mr = {.address = 0x1000, .iova = 0x1000, .bytes = 4096, .rkey = 0x300, .lkey = 0x300}};
    struct journal_record gone = {
        .call = JOURNAL_DEREG_MR, .context = 1, .mr = {.address = 0x1000, .bytes = 4096, .rkey = 0x300}};
    checked();
    fixture_note(fixture.node0, 1500, &opened);
    fixture_note(fixture.node0, 1500, &made);
    sends_post(1);
    fixture_note(fixture.node0, 3000, &gone);
    EXPECT_STREQ(fixture.lines, "");
    gone.context = 0;
    gone.mr.rkey = 0x100;
    fixture_note(fixture.node0, 3000, &gone);
    EXPECT_CONTAINS(fixture.lines, "the region with rkey 0x100 is deregistered while a request of qp 1 (wr_id 0x0)");
    fixture_close(&fixture);
}
