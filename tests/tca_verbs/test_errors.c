// Each error by name, on the right request, and no byte where it should not be.
#include <errno.h>
#include <string.h>

#include "party.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)party_enter(arg, board);
    party_leave(arg, board);
}

static void run(plat_program_fn first, plat_program_fn other, void (*adjust)(struct party *party))
{
    struct party party;
    party_init(&party, 2);
    if (adjust != NULL) {
        adjust(&party);
    }
    party_run(&party, first, other);
    party_fini(&party);
}

// A good request, a bad one, and one behind it, which is flushed.
static void refused(struct party *party, peach2_handle_t *board, struct ibv_send_wr wr, struct ibv_sge sge,
                    enum ibv_wc_status status)
{
    struct end *end = party_enter(party, board), *other = &party->ends[1];
    struct ibv_sge good = party_sge(&end->near, 0, 64), there = party_sge(&other->near, 4096, 0);
    struct ibv_send_wr write = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {there.addr, there.lkey}};
    wr.wr_id = 2;
    site_fill(end->near.data, 64, 9);
    sge.addr += (uint64_t)(uintptr_t)end->near.data;
    sge.lkey += end->near.key;
    wr.wr.rdma.remote_addr += (uint64_t)(uintptr_t)other->near.data;
    wr.wr.rdma.rkey += other->near.key;
    EXPECT_EQ(party_post(&end->qps[1], &write, &good), 0);
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    write.wr_id = 3;
    EXPECT_EQ(party_post(&end->qps[1], &write, &good), 0);
    party_expect(end, 1, IBV_WC_SUCCESS);
    party_expect(end, 2, status);
    party_expect(end, 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(party_qp_state(&end->qps[1]), IBV_QPS_ERR);
    EXPECT_TRUE(site_is_filled(other->near.data + 4096, 64, 9));
    EXPECT_TRUE(site_is_value(other->near.data, 4096, 0));
    party_leave(party, board);
}

#define REFUSED(name_, claim_, wr_, sge_, status_)                                                                     \
    static void program_##name_(void *arg, peach2_handle_t *board)                                                     \
    {                                                                                                                  \
        refused(arg, board, (struct ibv_send_wr)wr_, (struct ibv_sge)sge_, status_);                                   \
    }                                                                                                                  \
    TEST(TcaVerbsErrors, claim_)                                                                                       \
    {                                                                                                                  \
        run(program_##name_, only_progress, NULL);                                                                     \
    }

#define LIST(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

REFUSED(key, AWriteWithAWrongKeyIsARemoteAccessError, LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {0, 1}),
        LIST(0, 64, 0), IBV_WC_REM_ACCESS_ERR)
REFUSED(large_key, ALargeWriteWithAWrongKeyIsARemoteAccessError, LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {0, 1}),
        LIST(0, 65536, 0), IBV_WC_REM_ACCESS_ERR)
REFUSED(range, AWriteBeyondTheRegionIsARemoteAccessError,
        LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {PARTY_BYTES - 63, 0}), LIST(0, 64, 0), IBV_WC_REM_ACCESS_ERR)
REFUSED(before, AWriteBeforeTheRegionIsARemoteAccessError,
        LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {UINT64_MAX, 0}), LIST(0, 64, 0), IBV_WC_REM_ACCESS_ERR)
REFUSED(read_key, AReadWithAWrongKeyIsARemoteAccessError, LIST(.opcode = IBV_WR_RDMA_READ, .wr.rdma = {0, 1}),
        LIST(0, 64, 0), IBV_WC_REM_ACCESS_ERR)
REFUSED(lkey, AWrongLocalKeyIsALocalProtectionError, LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {0, 0}),
        LIST(0, 64, 1), IBV_WC_LOC_PROT_ERR)
REFUSED(lrange, ALocalRangeBeyondTheRegionIsALocalProtectionError, LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {0, 0}),
        LIST(PARTY_BYTES - 8, 64, 0), IBV_WC_LOC_PROT_ERR)
REFUSED(length, AMessageBeyondTheMaximumIsALocalLengthError, LIST(.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {0, 0}),
        LIST(0, (1u << 30) + 1, 0), IBV_WC_LOC_LEN_ERR)
REFUSED(atomic, AnAtomicOfAMisalignedWordIsAnInvalidRequest,
        LIST(.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic = {.remote_addr = 4}), LIST(0, 8, 0),
        IBV_WC_REM_INV_REQ_ERR)

// --- what queue pairs allow -----------------------------------------------------------------------------------------

static void no_remote(struct party *party)
{
    party->attr.qp_access_flags = 0;
}

static void not_allowed(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board), *other = &party->ends[1];
    struct ibv_sge sge = party_sge(&end->near, 0, 64), to = party_sge(&other->near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 5, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(party_qp_state(&other->qps[0]), IBV_QPS_ERR);
    struct ibverbs_event event;
    EXPECT_EQ(ops->event_get(end->context, IBVERBS_NO_WAIT, &event), -EAGAIN);
    party_leave(party, board);
}

TEST(TcaVerbsErrors, AWriteThatTheQueuePairDoesNotAllowIsAnInvalidRequest)
{
    run(not_allowed, only_progress, no_remote);
}

// --- receivers ------------------------------------------------------------------------------------------------------

static void send_one(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->far, 0, (uint32_t)party->value[0]);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    party_meet(party, end);
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 1, (enum ibv_wc_status)party->value[1]);
    party_leave(party, board);
}

static void receive_short(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->far, 0, (uint32_t)party->value[2]);
    sge.lkey += (uint32_t)party->value[3];
    EXPECT_EQ(party_receive(&end->qps[0], 7, &sge), 0);
    EXPECT_EQ(party_receive(&end->qps[0], 8, &sge), 0);
    party_meet(party, end);
    party_expect(end, 7, (enum ibv_wc_status)party->value[4]);
    party_expect(end, 8, IBV_WC_WR_FLUSH_ERR);
    EXPECT_TRUE(site_is_value(end->far.data, 65536, 0));
    party_leave(party, board);
}

static void receive_case(uint32_t sent, enum ibv_wc_status at_sender, uint32_t room, uint32_t key_off,
                         enum ibv_wc_status at_receiver)
{
    struct party party;
    party_init(&party, 2);
    const uint64_t values[] = {sent, at_sender, room, key_off, at_receiver};
    memcpy(party.value, values, sizeof values);
    party_run(&party, send_one, receive_short);
    party_fini(&party);
}

TEST(TcaVerbsErrors, AMessageLongerThanTheReceiveIsALengthErrorThereAndInvalidHere)
{
    receive_case(65, IBV_WC_REM_INV_REQ_ERR, 64, 0, IBV_WC_LOC_LEN_ERR);
    receive_case(65536, IBV_WC_REM_INV_REQ_ERR, 65535, 0, IBV_WC_LOC_LEN_ERR);
}

TEST(TcaVerbsErrors, AReceiveWithAWrongKeyIsAProtectionErrorThereAndOperationalHere)
{
    receive_case(64, IBV_WC_REM_OP_ERR, 64, 1, IBV_WC_LOC_PROT_ERR);
}

static void receives_nothing(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    party_meet(party, party_enter(party, board));
    party_leave(party, board);
}

static void rnr_once(struct party *party)
{
    party->attr.rnr_retry = 2;
    party->value[0] = 64;
    party->value[1] = IBV_WC_RNR_RETRY_EXC_ERR;
}

TEST(TcaVerbsErrors, AReceiverWithoutBuffersExhaustsTheRnrRetries)
{
    run(send_one, receives_nothing, rnr_once);
}

static void receive_late(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    party_meet(party, end);
    struct ibv_wc wc;
    EXPECT_EQ(ops->cq_wait(end->cq, 200000), -ETIMEDOUT);
    EXPECT_EQ(ops->cq_poll(end->cq, 1, &wc), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_sge sge = party_sge(&end->near, i * 65536, 65536);
        EXPECT_EQ(party_receive(&end->qps[0], i, &sge), 0);
        party_expect(end, i, IBV_WC_SUCCESS);
        EXPECT_TRUE(site_is_filled((uint8_t *)(uintptr_t)sge.addr, i == 1 ? 50000 : 64, i));
    }
    party_leave(party, board);
}

static void send_early(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    party_meet(party, end);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_sge sge = party_sge(&end->far, i * 65536, i == 1 ? 50000 : 64);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        site_fill((uint8_t *)(uintptr_t)sge.addr, sge.length, i);
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    party_leave(party, board);
}

TEST(TcaVerbsErrors, AReceiverThatIsLateGetsEveryMessageInOrder)
{
    run(send_early, receive_late, NULL);
}

// --- peers that are gone --------------------------------------------------------------------------------------------

static void send_to_nobody(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    const struct backend *backend = peach2_backend(board);
    struct ibv_sge sge = party_sge(&end->near, 0, 64);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    wr.wr_id = 2;
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    party_expect(end, 2, IBV_WC_WR_FLUSH_ERR);
    // 4 times 4.096 us * 2^12
    EXPECT_BETWEEN((backend->ops->time_ps(backend->ctx) - start_ps) / 1000000, 67108, 68000);
    party->cluster.flag = true;
    party->gone = true;
    party_leave(party, board);
}

static void silent(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    (void)party_enter(party, board);
    cluster_await(board, &party->cluster.flag);
    party->gone = true;
    party_leave(party, board);
}

TEST(TcaVerbsErrors, APeerThatDoesNotAnswerExceedsTheRetriesInBoundedTime)
{
    run(send_to_nobody, silent, NULL);
}

static void send_to_closed(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->near, 0, 64);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    cluster_await(board, &party->cluster.flag);
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    party->gone = true;
    party_leave(party, board);
}

static void close_early(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    (void)party_enter(party, board);
    party->gone = true;
    party_leave(party, board);
    party->cluster.flag = true;
}

TEST(TcaVerbsErrors, APeerThatClosedIsGone)
{
    run(send_to_closed, close_early, NULL);
}

// --- full queues and destroyed objects ------------------------------------------------------------------------------

static void full(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board), *other = &party->ends[1];
    struct ibv_sge sge = party_sge(&end->near, 0, 64), to = party_sge(&other->near, 0, 0);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    for (unsigned i = 0; i < 64; i++) {
        wr.wr_id = i;
        EXPECT_EQ(ops->send_room(end->qps[1].qp), 64 - i);
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
        EXPECT_EQ(party_receive(&end->qps[1], i, &sge), 0);
    }
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), -ENOMEM);
    EXPECT_EQ(party_receive(&end->qps[1], 0, &sge), -ENOMEM);
    for (unsigned i = 0; i < 64; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ops->send_room(end->qps[1].qp), 64);
    party_leave(party, board);
}

TEST(TcaVerbsErrors, AFullQueueRefusesTheRequestAndKeepsTheOthers)
{
    run(full, only_progress, NULL);
}

// --- memory that does not exist --------------------------------------------------------------------------------------

static void register_holes(void *arg, peach2_handle_t *board)
{
    static const uint8_t constant[64] = {1};
    struct end *end = party_enter(arg, board);
    struct ibverbs_region regions[] = {{.address = NULL, .bytes = 1, .access = 0},
                                       {.address = (void *)UINTPTR_MAX, .bytes = 1, .access = 0},
                                       {.address = (void *)(uintptr_t)constant, .bytes = 64, .access = PARTY_ALL}};
    for (unsigned i = 0; i < sizeof regions / sizeof *regions; i++) {
        void *mr;
        uint32_t lkey, rkey;
        regions[i].iova = (uintptr_t)regions[i].address;
        EXPECT_EQ(ops->mr_register(end->pd, &regions[i], &mr, &lkey, &rkey), -EFAULT);
    }
    party_leave(arg, board);
}

TEST(TcaVerbsErrors, MemoryThatDoesNotExistOrMayNotBeWrittenIsNoRegion)
{
    run(register_holes, only_progress, NULL);
}
