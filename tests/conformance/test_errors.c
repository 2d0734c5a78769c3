// The right status for the right request, the effect on the requests around it, and no byte outside of the target (IBA
// 10.10.3, 11.6.2, and 9.9 for both sides of a connection).
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { BAD_BYTES = 5000, GOOD_AT = 1 << 18 };

// --- one bad request -------------------------------------------------------------------------------------------------
// A good write, the bad request, and a later one that is flushed. Only the good write has an effect.

// vendor_err (docs/debugging-verbs.md)
enum reason { NO_REGION = 1, NOT_IN_REGION = 3, NOT_ALLOWED = 5, MISALIGNED = 9, REQUEST = 14 };

struct bad {
    enum ibv_wr_opcode opcode;
    uint32_t bytes, lkey_off, rkey_off;
    int64_t local_off, remote_off;
    enum ibv_wc_status status;
    enum reason reason;
    enum ibv_event_type event; // at the peer; IBV_EVENT_GID_CHANGE: none
    int access;                // of its queue pair
};
#define NO_EVENT IBV_EVENT_GID_CHANGE

static const struct bad *bad_now;

static void post_bad(struct side *side)
{
    const struct bad *bad = bad_now;
    struct ibv_sge good = fixture_sge(side, 0, 64), sge = fixture_sge(side, 0, bad->bytes);
    struct ibv_send_wr third = fixture_wr(side, 3, IBV_WR_RDMA_WRITE, &good, 0);
    struct ibv_send_wr second = fixture_wr(side, 2, bad->opcode, &sge, 0);
    sge.lkey += bad->lkey_off;
    sge.addr += (uint64_t)bad->local_off;
    if (bad->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || bad->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        second.wr.atomic.remote_addr += (uint64_t)bad->remote_off;
        second.wr.atomic.rkey += bad->rkey_off;
        second.wr.atomic.compare_add = 7;
    } else {
        second.wr.rdma.remote_addr += (uint64_t)bad->remote_off;
        second.wr.rdma.rkey += bad->rkey_off;
    }
    second.next = &third;
    if (bad->access == FIXTURE_ALL) {
        fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 64, GOOD_AT);
    }
    EXPECT_EQ(fixture_post(side, &second), 0);
    if (bad->access == FIXTURE_ALL) {
        (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    }
    const struct ibv_wc wc = fixture_expect(side, 2, bad->status);
    EXPECT_EQ(wc.vendor_err, side->fixture->device == IN_MEMORY ? 0 : bad->reason);
    EXPECT_EQ(wc.qp_num, side->qp->qp_num);
    EXPECT_EQ(fixture_expect(side, 3, IBV_WC_WR_FLUSH_ERR).qp_num, side->qp->qp_num);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
}

static void suffer(struct side *side)
{
    if (bad_now->event != NO_EVENT) {
        fixture_expect_event(side, bad_now->event, side->qp);
        EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
    }
    fixture_barrier(side);
}

static void post_bad_and_meet(struct side *side)
{
    post_bad(side);
    fixture_barrier(side);
}

static void refuse(enum device device, const struct bad *bad)
{
    uint8_t pattern[64];
    struct fixture *fixture = fixture_new(device);
    bad_now = bad;
    fixture->attr.qp_access_flags = bad->access;
    fixture_run(fixture, post_bad_and_meet, suffer);
    if (bad->opcode == IBV_WR_RDMA_READ && bad->status == IBV_WC_LOC_PROT_ERR) {
        memset(fixture->sides[1].memory, 0, 64); // detected at the answer: later requests may be done by then
    }
    if (bad->access == FIXTURE_ALL) {
        fixture_expect_only(&fixture->sides[1], GOOD_AT, &fixture->sides[0], 0, 64);
    } else {
        fixture_expect_only(&fixture->sides[1], 0, &fixture->sides[0], 0, 0);
    }
    fixture_fill(pattern, sizeof pattern, 1);
    EXPECT_MEMEQ(fixture->sides[0].memory, pattern, sizeof pattern); // nothing was read or fetched
    fixture_end(fixture);
}

#define REFUSED(claim_, ...)                                                                                           \
    RULE(Errors, claim_)                                                                                               \
    {                                                                                                                  \
        static const struct bad bad = {__VA_ARGS__};                                                                   \
        refuse(device, &bad);                                                                                          \
    }

// IBA 9.7.4.1.5, 9.7.5.2.5: keys, rights and ranges at the responder.
REFUSED(AWriteWithAWrongKeyIsARemoteAccessError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0x40, 0, 0, IBV_WC_REM_ACCESS_ERR,
        NO_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(ALargeWriteWithAWrongKeyIsARemoteAccessError, IBV_WR_RDMA_WRITE, 100000, 0, 0x40, 0, 0, IBV_WC_REM_ACCESS_ERR,
        NO_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AWriteOfOneByteTooManyIsARemoteAccessError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0, 0,
        FIXTURE_BYTES - BAD_BYTES + 1, IBV_WC_REM_ACCESS_ERR, NOT_IN_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AWriteBeforeTheRegionIsARemoteAccessError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0, 0, -1, IBV_WC_REM_ACCESS_ERR,
        NOT_IN_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AWriteAroundTheEndOfAddressesIsARemoteAccessError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0, 0, INT64_MAX,
        IBV_WC_REM_ACCESS_ERR, NOT_IN_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AReadWithAWrongKeyIsARemoteAccessError, IBV_WR_RDMA_READ, BAD_BYTES, 0, 0x40, 0, 0, IBV_WC_REM_ACCESS_ERR,
        NO_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AReadBeyondTheRegionIsARemoteAccessError, IBV_WR_RDMA_READ, BAD_BYTES, 0, 0, 0, FIXTURE_BYTES - BAD_BYTES + 1,
        IBV_WC_REM_ACCESS_ERR, NOT_IN_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AnAtomicWithAWrongKeyIsARemoteAccessError, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0x40, 0, 0, IBV_WC_REM_ACCESS_ERR,
        NO_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
REFUSED(AnAtomicBeyondTheRegionIsARemoteAccessError, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, 0, 0, FIXTURE_BYTES,
        IBV_WC_REM_ACCESS_ERR, NOT_IN_REGION, IBV_EVENT_QP_ACCESS_ERR, FIXTURE_ALL)
// IBA 9.7.4.1.5.2: an atomic's word must be aligned to 8.
REFUSED(AMisalignedAtomicIsAnInvalidRequest, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0, 0, 4, IBV_WC_REM_INV_REQ_ERR,
        MISALIGNED, IBV_EVENT_QP_REQ_ERR, FIXTURE_ALL)
// IBA 9.7.4.1.2, table 62: an operation that the queue pair does not allow is an unsupported opcode.
REFUSED(AWriteThatTheQueuePairDoesNotAllowIsAnInvalidRequest, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0, 0, 0,
        IBV_WC_REM_INV_REQ_ERR, NOT_ALLOWED, IBV_EVENT_QP_REQ_ERR, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
REFUSED(AReadThatTheQueuePairDoesNotAllowIsAnInvalidRequest, IBV_WR_RDMA_READ, BAD_BYTES, 0, 0, 0, 0,
        IBV_WC_REM_INV_REQ_ERR, NOT_ALLOWED, IBV_EVENT_QP_REQ_ERR, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
REFUSED(AnAtomicThatTheQueuePairDoesNotAllowIsAnInvalidRequest, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0, 0, 0,
        IBV_WC_REM_INV_REQ_ERR, NOT_ALLOWED, IBV_EVENT_QP_REQ_ERR, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
// IBA 10.7.3, 11.6.2: at the requester, before anything is sent.
REFUSED(AWrongLocalKeyIsALocalProtectionError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0x40, 0, 0, 0, IBV_WC_LOC_PROT_ERR,
        NO_REGION, NO_EVENT, FIXTURE_ALL)
REFUSED(AWrongLocalKeyOfASendIsALocalProtectionError, IBV_WR_SEND, 8, 0x40, 0, 0, 0, IBV_WC_LOC_PROT_ERR, NO_REGION,
        NO_EVENT, FIXTURE_ALL)
REFUSED(ALocalRangeBeyondTheRegionIsALocalProtectionError, IBV_WR_RDMA_WRITE, BAD_BYTES, 0, 0, FIXTURE_BYTES - 8, 0,
        IBV_WC_LOC_PROT_ERR, NOT_IN_REGION, NO_EVENT, FIXTURE_ALL)
REFUSED(AWrongLocalKeyOfAReadIsALocalProtectionError, IBV_WR_RDMA_READ, BAD_BYTES, 0x40, 0, 0, 0, IBV_WC_LOC_PROT_ERR,
        NO_REGION, NO_EVENT, FIXTURE_ALL)
REFUSED(AnAtomicOfOtherThanEightBytesIsALocalLengthError, IBV_WR_ATOMIC_FETCH_AND_ADD, 16, 0, 0, 0, 0,
        IBV_WC_LOC_LEN_ERR, REQUEST, NO_EVENT, FIXTURE_ALL)
// IBA 9.7.2: longer than the port's maximum message.
REFUSED(AMessageBeyondTheMaximumIsALocalLengthError, IBV_WR_RDMA_WRITE, (1u << 31) + 1, 0, 0, 0, 0, IBV_WC_LOC_LEN_ERR,
        REQUEST, NO_EVENT, FIXTURE_ALL)

static void read_and_err(struct side *side)
{
    memset(side->memory, 0, FIXTURE_BYTES);
    fixture_fill(side->peer->memory, GOOD_AT, 9);
    *fixture_word(side->peer, GOOD_AT) = 5;
    fixture_send(side, 1, IBV_WR_RDMA_READ, GOOD_AT, 100000, 3);
    fixture_send(side, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, GOOD_AT); // adds 0
    fixture_send(side, 3, IBV_WR_RDMA_READ, 16, 8, 64);
    fixture_send(side, 4, IBV_WR_RDMA_WRITE, 0, BAD_BYTES, FIXTURE_BYTES - 1);
    fixture_send(side, 5, IBV_WR_RDMA_READ, 16, 8, 64);
    for (unsigned i = 1; i <= 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    (void)fixture_expect(side, 4, IBV_WC_REM_ACCESS_ERR);
    (void)fixture_expect(side, 5, IBV_WC_WR_FLUSH_ERR);
    EXPECT_MEMEQ(side->memory + GOOD_AT, side->peer->memory + 3, 100000);
    EXPECT_EQ(*fixture_word(side, 0), 5);
    fixture_barrier(side);
}

// IBA 9.7.5.1.2: requests before the refused one are answered first.
RULE(Errors, ReadsBeforeTheBadRequestAreAnswered)
{
    fixture_play(device, read_and_err, fixture_barrier);
}

// --- regions ---------------------------------------------------------------------------------------------------------

static void write_to_freed(struct side *side)
{
    uint32_t rkey = side->peer->rkey;
    fixture_barrier(side);
    fixture_barrier(side);
    struct ibv_sge sge = fixture_sge(side, 0, 65536);
    struct ibv_send_wr wr = fixture_wr(side, 4, IBV_WR_SEND, &sge, 0);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)side->peer->memory;
    wr.wr.rdma.rkey = rkey;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 4, IBV_WC_REM_ACCESS_ERR);
}

static void free_and_register_again(struct side *side)
{
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
    fixture_register(side); // another key
    fixture_barrier(side);
    fixture_expect_event(side, IBV_EVENT_QP_ACCESS_ERR, side->qp);
    fixture_expect_only(side, 0, side->peer, 0, 0);
}

// IBA 10.6.6.2: the key of a deregistered region is invalid, even if the same memory is registered again.
RULE(Errors, AFreedRegionsKeyIsARemoteAccessError)
{
    fixture_play(device, write_to_freed, free_and_register_again);
}

static void use_rights(struct side *side)
{
    fixture_barrier(side);
    struct ibv_sge sge = fixture_sge(side, 0, 64);
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_READ, &sge, 0);
    wr.wr.rdma.rkey = (uint32_t)side->peer->value[0];
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    wr.opcode = IBV_WR_RDMA_WRITE;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_REM_ACCESS_ERR);
    fixture_barrier(side);
}

static void give_reads_only(struct side *side)
{
    struct ibv_mr *mr = ibv_reg_mr(side->pd, side->memory, FIXTURE_BYTES, IBV_ACCESS_REMOTE_READ);
    side->value[0] = mr->rkey;
    fixture_barrier(side);
    fixture_barrier(side);
    fixture_expect_only(side, 0, side->peer, 0, 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// IBA 10.6.3.1.
RULE(Errors, ARegionGivesOnlyTheRightsThatItWasRegisteredWith)
{
    fixture_play(device, use_rights, give_reads_only);
}

static void use_foreign(struct side *side)
{
    fixture_barrier(side);
    struct ibv_sge sge = fixture_sge(side, 0, 64);
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    wr.wr.rdma.rkey = (uint32_t)side->peer->value[0];
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_REM_ACCESS_ERR);
    fixture_barrier(side);
}

static void give_foreign(struct side *side)
{
    struct ibv_pd *pd = ibv_alloc_pd(side->context);
    struct ibv_mr *mr = ibv_reg_mr(pd, side->memory, FIXTURE_BYTES, FIXTURE_ALL);
    side->value[0] = mr->rkey;
    fixture_barrier(side);
    fixture_barrier(side);
    fixture_expect_only(side, 0, side->peer, 0, 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

// IBA 10.2.3.1: a key of another protection domain is invalid.
RULE(Errors, AKeyOfAnotherDomainIsARemoteAccessError)
{
    fixture_play(device, use_foreign, give_foreign);
}

static void write_without_bytes(struct side *side)
{
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_WRITE, NULL, 0);
    wr.wr.rdma.rkey = 12345;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    wr.opcode = IBV_WR_RDMA_READ;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
}

// IBA 9.7.4.1.5: no bytes need no key.
RULE(Errors, NoBytesNeedNoKey)
{
    fixture_play(device, write_without_bytes, NULL);
}

// --- receivers -------------------------------------------------------------------------------------------------------

static void send_too_much(struct side *side)
{
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, (uint32_t)side->fixture->sides[0].value[0], 0);
    fixture_send(side, 2, IBV_WR_SEND, 0, 8, 0);
    (void)fixture_expect(side, 1, IBV_WC_REM_INV_REQ_ERR);
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    fixture_barrier(side);
}

static void receive_too_little(struct side *side)
{
    uint32_t room = (uint32_t)side->peer->value[0] - 1;
    EXPECT_EQ(fixture_receive(side, 5, 0, room) | fixture_receive(side, 6, 0, room), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 5, IBV_WC_LOC_LEN_ERR);
    (void)fixture_expect(side, 6, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
    fixture_expect_no_event(side); // 9.9.3, class C: the receive's completion reports it
    EXPECT_EQ(side->memory[room], 0);
    fixture_barrier(side);
}

// IBA 9.7.4.1.7 (C9-74), 9.7.5.2.7.
RULE(Errors, AMessageLongerThanTheReceiveFailsBothSides)
{
    const uint32_t lengths[] = {2, 65, 3001, 65536};
    for (unsigned i = 0; i < 4; i++) {
        struct fixture *fixture = fixture_new(device);
        fixture->sides[0].value[0] = lengths[i];
        fixture_run(fixture, send_too_much, receive_too_little);
        fixture_end(fixture);
    }
}

static void send_to_wrong_key(struct side *side)
{
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, 3000, 0);
    (void)fixture_expect(side, 1, IBV_WC_REM_OP_ERR);
    fixture_barrier(side);
}

static void receive_with_wrong_key(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 4000);
    struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
    sge.lkey += 0x40;
    EXPECT_EQ(ibv_post_recv(side->qp, &wr, &bad), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 5, IBV_WC_LOC_PROT_ERR);
    fixture_expect_no_event(side);
    fixture_expect_only(side, 0, side->peer, 0, 0);
    fixture_barrier(side);
}

// IBA 9.7.5.2.8.
RULE(Errors, AReceiveWithAWrongKeyFailsBothSides)
{
    fixture_play(device, send_to_wrong_key, receive_with_wrong_key);
}

static void send_early_and_err(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 64);
    struct ibv_send_wr wr = fixture_wr(side, 2, IBV_WR_RDMA_WRITE, &sge, 0);
    sge.lkey += 0x40;
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 2, IBV_WC_LOC_PROT_ERR);
}

static void receive_late(struct side *side)
{
    fixture_sleep(side, 50 * US);
    EXPECT_EQ(fixture_receive(side, 5, 4096, 64), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 5, IBV_WC_SUCCESS);
    fixture_expect_only(side, 4096, side->peer, 0, 64);
}

// IBA 10.8.3: earlier requests may have to be retransmitted first.
RULE(Errors, ALocalErrorWaitsForTheRequestsBeforeIt)
{
    fixture_play(device, send_early_and_err, receive_late);
}

// --- flush -----------------------------------------------------------------------------------------------------------

static void fail_by_hand(struct side *side)
{
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(fixture_receive(side, 10 + i, 0, 64), 0);
    }
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_ERR, side->peer, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)fixture_expect(side, 10 + i, IBV_WC_WR_FLUSH_ERR);
    }
    for (unsigned i = 0; i < 3; i++) {
        fixture_send(side, 20 + i, IBV_WR_SEND, 0, 64, 0);
        (void)fixture_expect(side, 20 + i, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(fixture_receive(side, 30 + i, 0, 64), 0);
        (void)fixture_expect(side, 30 + i, IBV_WC_WR_FLUSH_ERR);
    }
    fixture_expect_none(side, 50 * US);
}

// IBA 10.3.1.6, 10.8.6.3.
RULE(Errors, AQueuePairInErrorFlushesWhatIsThereAndWhatComes)
{
    fixture_play(device, fail_by_hand, NULL);
}

static void fail_in_the_middle(struct side *side)
{
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(fixture_receive(side, 100 + i, i * 64, 64), 0);
    }
    struct ibv_sge sge = fixture_sge(side, 0, 64);
    for (unsigned i = 0; i < 12; i++) {
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_RDMA_WRITE, &sge, i * 64);
        wr.send_flags = i % 3 == 2 ? IBV_SEND_SIGNALED : 0;
        wr.wr.rdma.rkey += i == 6 ? 0x40 : 0; // not signalled
        EXPECT_EQ(fixture_post(side, &wr), 0);
    }
    const uint64_t order[] = {2, 5, 6, 7, 8, 9, 10, 11};
    uint64_t received = 100, next = 0;
    for (unsigned i = 0; i < 12; i++) {
        const struct ibv_wc wc = fixture_completion(side);
        EXPECT_EQ(wc.wr_id, wc.wr_id >= 100 ? received : order[next]);
        EXPECT_EQ(wc.status, wc.wr_id < 6    ? IBV_WC_SUCCESS
                             : wc.wr_id == 6 ? IBV_WC_REM_ACCESS_ERR
                                             : IBV_WC_WR_FLUSH_ERR);
        *(wc.wr_id >= 100 ? &received : &next) += 1;
    }
    fixture_expect_none(side, 50 * US);
    fixture_barrier(side);
}

// IBA 10.8.6.3, 10.7.3.1: errors also complete unsignalled requests; each queue in its order, each request once.
RULE(Errors, BothQueuesAreFlushedInOrderBehindTheRequestThatFailed)
{
    fixture_play(device, fail_in_the_middle, fixture_barrier);
}
