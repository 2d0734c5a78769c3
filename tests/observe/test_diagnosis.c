// Messages about completions in error and refused calls; and records with arbitrary contents.
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/resource.h>

#include "fixture.h"
#include "models/hca/abi/hca_abi.h"
#include "models/hca/loss.h"
#include "tests/shim/test.h"

static struct fixture fixture;

static void connected(void)
{
    fixture_open(&fixture, &(struct observe_options){0});
    fixture_connect_both(&fixture);
}

static struct journal_record failed_write(uint32_t fault, uint64_t address, uint32_t key)
{
    return (struct journal_record){.call = JOURNAL_POLL_CQ,
                                   .completion = {.wr_id = 7,
                                                  .is_known = true,
                                                  .posted_bytes = 64,
                                                  .remote_address = address,
                                                  .rkey = key,
                                                  .cq = 2,
                                                  .qp = 1,
                                                  .status = IBV_WC_REM_ACCESS_ERR,
                                                  .opcode = IBV_WC_RDMA_WRITE,
                                                  .vendor_error = fault}};
}

TEST(Diagnosis, OfAWrongKeyListsTheRegionsOfTheOtherSide)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x999);
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines,
                    "node1 qp 1 -> node0 qp 1: RDMA_WRITE of 64 B to 0x1000, rkey 0x999 (wr_id 0x7): "
                    "REM_ACCESS_ERR: no such region; regions there: rkey 0x100 [0x1000, 4 KiB, local write, "
                    "remote write]");
    fixture_close(&fixture);
}

// Programs that do not exchange their numbers send these values.
TEST(Diagnosis, OfAnAddressAndAKeyOfZeroPrintsThem)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0, 0);
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "RDMA_WRITE of 64 B to 0x0, rkey 0x0 (wr_id 0x7): REM_ACCESS_ERR: no such region; "
                                   "regions there: rkey 0x100 [");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfAMissingRightShowsTheRegion)
{
    connected();
    struct journal_record record = failed_write(HCA_FAULT_RIGHTS, 0x1000, 0x100);
    record.completion.opcode = IBV_WC_RDMA_READ;
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines,
                    "the region does not allow this access: remote read is missing in rkey 0x100 [0x1000, "
                    "4 KiB, local write, remote write]");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfALocalKeyShowsTheSegmentAndTheRegionsHere)
{
    connected();
    struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x100);
    record.completion.status = IBV_WC_LOC_PROT_ERR;
    record.completion.lkey = 0x777;
    record.completion.address = 0x5000;
    record.completion.first_bytes = 16;
    record.completion.segments = 2;
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines,
                    "LOC_PROT_ERR: no such region; the first of its segments: lkey 0x777 [0x5000, 16 B]; "
                    "regions here: lkey 0x200 [");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfAReceiverWithASharedQueueSaysSo)
{
    connected();
    struct journal_record record = {.call = JOURNAL_CREATE_QP, .qp = {.number = 1, .type = IBV_QPT_RC, .srq = 1}};
    fixture_note(fixture.node0, 100, &record);
    record = failed_write(HCA_FAULT_NO_RECEIVE, 0, 0);
    record.completion.opcode = IBV_WC_SEND;
    record.completion.status = IBV_WC_RNR_RETRY_EXC_ERR;
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, ": shared receive queue of node0 qp 1 empty; RNR");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfADatagramThatIsDroppedSaysWhyOnce)
{
    connected();
    const struct hca_loss loss = {
        .kind = HCA_LOSS_QKEY, .qpn = 1, .source_qpn = 1, .source_lid = 1, .qkey = 0x2222, .own_qkey = 0x1111};
    observe_lost(fixture.observe, "node1.hca", &loss);
    observe_lost(fixture.observe, "node1.hca", &loss);
    EXPECT_STREQ(fixture.lines,
                 "node1: a message of node0 qp 1 for qp 1 is dropped: its Q_Key is 0x2222, the queue pair's "
                 "is 0x1111 (what follows is counted: packets_discarded of node1.hca)\n");
    fixture_close(&fixture);
}

// A reason is reported once, also if messages are dropped for another reason in between.
TEST(Diagnosis, OfDatagramsThatAreDroppedForSeveralReasonsSaysEachOnce)
{
    const struct hca_loss losses[] = {
        {.kind = HCA_LOSS_QKEY, .qpn = 1, .source_qpn = 1, .source_lid = 1, .qkey = 0x2222, .own_qkey = 0x1111},
        {.kind = HCA_LOSS_NO_RECEIVE, .qpn = 1, .source_qpn = 1, .source_lid = 1}};
    connected();
    observe_lost(fixture.observe, "node1.hca", &losses[0]);
    observe_lost(fixture.observe, "node1.hca", &losses[1]);
    EXPECT_CONTAINS(fixture.lines, "its Q_Key is 0x2222");
    EXPECT_CONTAINS(fixture.lines, "no receive request is posted");
    const size_t said = strlen(fixture.lines);
    observe_lost(fixture.observe, "node1.hca", &losses[0]);
    observe_lost(fixture.observe, "node1.hca", &losses[1]);
    EXPECT_STREQ(fixture.lines + said, "");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfSilenceNamesACompletionQueueThatWasFull)
{
    connected();
    const struct hca_loss loss = {.kind = HCA_LOSS_CQ_OVERRUN, .qpn = 1, .entries = 16};
    observe_lost(fixture.observe, "node0.hca", &loss);
    EXPECT_CONTAINS(fixture.lines, "node0 qp 1: a completion found its completion queue full (16 entries");
    struct journal_record record = failed_write(HCA_FAULT_NO_ANSWER, 0x1000, 0x100);
    record.completion.status = IBV_WC_RETRY_EXC_ERR;
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "nothing came back: that queue pair failed, as a completion queue of it was full");
    fixture_close(&fixture);
}

TEST(Diagnosis, IsInTheTraceAsWell)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x999);
    fixture_note(fixture.node1, 2000, &record);
    observe_trace_flush(fixture.observe);
    EXPECT_CONTAINS(fixture.traced, "2000 node1.process1.verbs diagnosis text=node1 qp 1 -> node0 qp 1: RDMA_WRITE");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfAKeyThatIsGoneSaysWhenItWent)
{
    connected();
    const struct journal_record gone = {.call = JOURNAL_DEREG_MR, .mr = {.rkey = 0x100}};
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x100);
    fixture_note(fixture.node0, 12300000, &gone);
    fixture_note(fixture.node1, 13000000, &record);
    EXPECT_CONTAINS(fixture.lines, "it was deregistered at 12.3 us; regions there: none");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfARangeSaysByHowMuchItIsMissed)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_RANGE, 0x1fe0, 0x100);
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "not all of the bytes are in the region: it ends 32 B after the end of the region");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfARangeSaysHowFarBeforeTheRegionItBegins)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_RANGE, 0x0ff0, 0x100);
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "not all of the bytes are in the region: it begins 16 B before the region");
    fixture_close(&fixture);
}

// The process that had the number before has destroyed its queue pair.
TEST(Diagnosis, NamesTheLivingQueuePairOfTwoWithTheSameNumber)
{
    const struct journal_record gone = {.call = JOURNAL_DESTROY_QP, .qp = {.number = 1}};
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x999);
    connected();
    fixture_note(fixture.node1, 1500, &gone);
    fixture_connect(
        observe_process_begin(fixture.observe, &(struct observe_identity){.node = "node1", .number = 2, .name = "c"}),
        2, 1, 0x300);
    fixture_note(fixture.node0, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "node0 qp 1 -> node1.process2 qp 1: ");
    EXPECT_CONTAINS(fixture.lines, "regions there: rkey 0x300 [");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfSilenceSaysWhyNobodyAnswers)
{
    connected();
    struct journal_record record = failed_write(HCA_FAULT_NO_ANSWER, 0x1000, 0x100);
    const struct journal_record other = {
        .call = JOURNAL_MODIFY_QP,
        .modify = {.number = 1, .mask = IBV_QP_STATE | IBV_QP_DEST_QPN, .to = IBV_QPS_RTS, .dest = 9}};
    record.completion.status = IBV_WC_RETRY_EXC_ERR;
    fixture_note(fixture.node0, 2000, &other);
    fixture_note(fixture.node1, 3000, &record);
    EXPECT_CONTAINS(fixture.lines, "nothing came back: that queue pair is connected to queue pair 9, not to this one");
    fixture_close(&fixture);
}

static void sequence_set(observe_process_t *process, uint32_t send_psn, uint32_t receive_psn)
{
    const struct journal_record record = {.call = JOURNAL_MODIFY_QP,
                                          .modify = {.number = 1,
                                                     .mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN,
                                                     .to = IBV_QPS_RTS,
                                                     .send_psn = send_psn,
                                                     .receive_psn = receive_psn}};
    fixture_note(process, 1500, &record);
}

// node1 gets no answer.
static void expect_silence(const char *why)
{
    struct journal_record record = failed_write(HCA_FAULT_NO_ANSWER, 0x1000, 0x100);
    record.completion.status = IBV_WC_RETRY_EXC_ERR;
    fixture_note(fixture.node1, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, why);
}

TEST(Diagnosis, OfSilenceSaysWhichSequenceNumbersDiffer)
{
    connected();
    sequence_set(fixture.node1, 5, 7);
    sequence_set(fixture.node0, 7, 7);
    expect_silence("nothing came back: sq_psn is 5 here, rq_psn 7 there");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfSilenceAllowsEachDirectionItsOwnSequenceNumbers)
{
    connected();
    sequence_set(fixture.node1, 5, 9);
    sequence_set(fixture.node0, 9, 5);
    expect_silence("nothing came back: packets were lost");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfAFlushIsGivenAgainAfterAReset)
{
    const struct journal_record flushed = {.call = JOURNAL_POLL_CQ,
                                           .completion = {.cq = 2, .qp = 1, .status = IBV_WC_WR_FLUSH_ERR}};
    connected();
    fixture_note(fixture.node1, 2000, &flushed);
    EXPECT_CONTAINS(fixture.lines, "node1 qp 1 -> node0 qp 1: a send request is flushed");
    const size_t said = strlen(fixture.lines);
    fixture_state_set(fixture.node1, 3000, IBV_QPS_RESET);
    fixture_state_set(fixture.node1, 3000, IBV_QPS_RTS);
    fixture_note(fixture.node1, 4000, &flushed);
    EXPECT_CONTAINS(fixture.lines + said, "node1 qp 1 -> node0 qp 1: a send request is flushed");
    fixture_close(&fixture);
}

TEST(Diagnosis, SaysNothingOfRequestsThatAreFlushedBehindAFailure)
{
    connected();
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x999);
    const struct journal_record flushed = {.call = JOURNAL_POLL_CQ,
                                           .completion = {.cq = 2, .qp = 1, .status = IBV_WC_WR_FLUSH_ERR}};
    fixture_note(fixture.node1, 2000, &record);
    size_t said = strlen(fixture.lines);
    fixture_note(fixture.node1, 2000, &flushed);
    EXPECT_EQ(strlen(fixture.lines), said);
    fixture_close(&fixture);
}

TEST(Diagnosis, OfARefusedCallHasItsReasonWithNumbers)
{
    connected();
    const struct journal_record record = {.call = JOURNAL_POST_SEND,
                                          .error = ENOMEM,
                                          .reason = JOURNAL_WHY_INLINE_BYTES,
                                          .a = 300,
                                          .b = 236,
                                          .send = {.qp = 1, .wr_id = 5, .opcode = IBV_WR_SEND, .bytes = 300}};
    fixture_note(fixture.node0, 2000, &record);
    EXPECT_CONTAINS(fixture.lines,
                    "node0: ibv_post_send on qp 1 (wr_id 0x5, SEND, 300 B) fails with ENOMEM: 300 B of inline "
                    "data, the queue pair was created with max_inline_data 236");
    fixture_close(&fixture);
}

TEST(Diagnosis, OfARefusedCallTellsTooManySegmentsFromAMissingAddressHandle)
{
    struct journal_record record = {.call = JOURNAL_POST_SEND,
                                    .error = EINVAL,
                                    .reason = JOURNAL_WHY_SEGMENTS,
                                    .a = 5,
                                    .b = 4,
                                    .send = {.qp = 1, .wr_id = 5, .opcode = IBV_WR_SEND, .bytes = 300}};
    connected();
    fixture_note(fixture.node0, 2000, &record);
    EXPECT_CONTAINS(fixture.lines, "fails with EINVAL: 5 segments, the queue was created with 4\n");
    record.reason = JOURNAL_WHY_ADDRESS_HANDLE;
    fixture_note(fixture.node0, 3000, &record);
    EXPECT_CONTAINS(fixture.lines,
                    "fails with EINVAL: a datagram needs an address handle of the queue pair's protection domain\n");
    fixture_close(&fixture);
}

// Each call with every bit set, and with an unknown reason: no value of a record is used as an index.
TEST(Records, MayBeAnything)
{
    connected();
    for (unsigned call = 0; call < JOURNAL_CALL_COUNT + 10; call++) {
        struct journal_record record;
        memset(&record, 0xff, sizeof record);
        record.call = (uint16_t)call;
        for (int error = 0; error < 2; error++) {
            record.error = error == 0 ? 0 : 0x7fffffff;
            fixture_note(fixture.node0, 3000 + call, &record);
        }
    }
    observe_trace_flush(fixture.observe);
    FILE *null = fopen("/dev/null", "w");
    observe_summary_print(fixture.observe, null);
    observe_summary_yaml(fixture.observe, null);
    fclose(null);
    EXPECT_CONTAINS(fixture.traced, "opcode=unknown");
    fixture_close(&fixture);
}

TEST(Records, OfMoreRegionsThanAreRememberedKeepTheLivingOnes)
{
    connected();
    for (uint32_t i = 0; i < 5000; i++) {
        const struct journal_record made = {.call = JOURNAL_REG_MR,
                                            .mr = {.rkey = 0x10000 + i, .access = IBV_ACCESS_REMOTE_READ, .bytes = 1}};
        const struct journal_record gone = {.call = JOURNAL_DEREG_MR, .mr = {.rkey = 0x10000 + i}};
        fixture_note(fixture.node0, 2000 + i, &made);
        fixture_note(fixture.node0, 2000 + i, &gone);
    }
    const struct journal_record record = failed_write(HCA_FAULT_KEY, 0x1000, 0x10000 + 4999);
    fixture_note(fixture.node1, 9000, &record);
    EXPECT_CONTAINS(fixture.lines, "it was deregistered at 6.999 ns; regions there: rkey 0x100 [");
    fixture_close(&fixture);
}

// Notes objects that are never given back, and requests that never complete.
static void note_endless(observe_process_t *process, uint32_t objects, uint32_t requests)
{
    for (uint32_t i = 0; i < objects; i++) {
        const struct journal_record region = {.call = JOURNAL_REG_MR, .mr = {.rkey = 0x1000000 + i}};
        const struct journal_record made = {.call = JOURNAL_CREATE_QP, .qp = {.number = 1000 + i}};
        const struct journal_record gone = {.call = JOURNAL_DESTROY_QP, .qp = {.number = 1000 + i}};
        fixture_note(process, 2000, &region);
        fixture_note(process, 2000, &made);
        fixture_note(process, 2000, &gone);
    }
    const struct journal_record post = {.call = JOURNAL_POST_SEND, .send = {.qp = 1}};
    for (uint32_t i = 0; i < requests; i++) {
        fixture_note(process, 3000, &post);
    }
}

// A program may claim any number of objects; the simulator's memory stays limited: more of them take no more memory.
TEST(Records, OfEndlessObjectsAndRequestsTakeBoundedMemory)
{
    fixture_open(&fixture, &(struct observe_options){0});
    observe_t *observe = observe_create(fixture.sim, &(struct observe_options){.check = true});
    observe_process_t *process =
        observe_process_begin(observe, &(struct observe_identity){.node = "node0", .name = "a"});
    fixture_connect(process, 1, 2, 0x100);
    struct rusage first, second;
    note_endless(process, 200000, 5000000);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &first), 0);
    note_endless(process, 200000, 1000000);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &second), 0);
    EXPECT_LT(second.ru_maxrss - first.ru_maxrss, 16 * 1024); // KiB
    observe_destroy(observe);
    fixture_close(&fixture);
}
