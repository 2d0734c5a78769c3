// Effects of requests, and failures: completion codes, states and events of both ends (IBA 9.7, 9.9, 10.7.3, 11.6.2).
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

enum { BYTES = 100, TO = PAIR_BYTES / 2 };

static void expect_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, state);
}

TEST(Transfer, SendsArriveInTheOldestBuffer)
{
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UC; type++) {
        struct pair pair;
        pair_init(&pair);
        pair_connect(&pair, type);
        cuda_fixture_fill(pair.side[0].buffer, BYTES, 7);
        struct ibv_sge sge = pair_sge(&pair.side[0], 0, BYTES);
        struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND_WITH_IMM, &sge);
        wr.imm_data = htobe32(0x01020304);
        EXPECT_EQ(pair_receive(&pair.side[1], 5, 512, 256), 0);
        EXPECT_EQ(pair_receive(&pair.side[1], 6, 1024, 256), 0);
        EXPECT_EQ(pair_send(&pair, &wr), 0);
        struct ibv_wc sent = pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
        struct ibv_wc received = pair_expect_wc(&pair.side[1], 5, IBV_WC_SUCCESS);
        EXPECT_EQ(sent.opcode, IBV_WC_SEND);
        EXPECT_EQ(received.opcode, IBV_WC_RECV);
        EXPECT_EQ(received.byte_len, BYTES);
        EXPECT_EQ(received.wc_flags, IBV_WC_WITH_IMM);
        EXPECT_EQ(be32toh(received.imm_data), 0x01020304);
        EXPECT_MEMEQ(pair.side[1].buffer + 512, pair.side[0].buffer, BYTES);
        pair_expect_none(&pair.side[1]);
        pair_fini(&pair);
    }
}

TEST(Transfer, GathersAndScatters)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    cuda_fixture_fill(pair.side[0].buffer, 400, 8);
    struct ibv_sge from[3] = {pair_sge(&pair.side[0], 0, 10), pair_sge(&pair.side[0], 300, 0),
                              pair_sge(&pair.side[0], 100, 50)};
    struct ibv_sge to[2] = {pair_sge(&pair.side[1], 1000, 33), pair_sge(&pair.side[1], 0, 100)};
    struct ibv_recv_wr receive = {.sg_list = to, .num_sge = 2}, *bad;
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, from);
    wr.num_sge = 3;
    EXPECT_EQ(ibv_post_recv(pair.side[1].qp, &receive, &bad), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(pair_expect_wc(&pair.side[1], 0, IBV_WC_SUCCESS).byte_len, 60);
    EXPECT_MEMEQ(pair.side[1].buffer + 1000, pair.side[0].buffer, 10);
    EXPECT_MEMEQ(pair.side[1].buffer + 1010, pair.side[0].buffer + 100, 23);
    EXPECT_MEMEQ(pair.side[1].buffer, pair.side[0].buffer + 123, 27);
    EXPECT_EQ(pair.side[1].buffer[27], 0);
    pair_fini(&pair);
}

TEST(Transfer, WritesAndReadsReachTheNamedMemory)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    cuda_fixture_fill(pair.side[0].buffer, BYTES, 9);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, BYTES);
    struct ibv_send_wr write = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge), read = pair_wr(&pair, IBV_WR_RDMA_READ, &sge);
    EXPECT_EQ(pair_send(&pair, &write), 0);
    EXPECT_MEMEQ(pair.side[1].buffer + TO, pair.side[0].buffer, BYTES);
    EXPECT_EQ(pair.side[1].buffer[TO + BYTES], 0);
    sge = pair_sge(&pair.side[0], 1000, BYTES);
    read.wr.rdma.remote_addr = (uintptr_t)pair.side[1].buffer + TO;
    EXPECT_EQ(pair_send(&pair, &read), 0);
    EXPECT_MEMEQ(pair.side[0].buffer + 1000, pair.side[0].buffer, BYTES);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
    EXPECT_EQ(wc.byte_len, BYTES);
    pair_expect_none(&pair.side[1]);
    pair_fini(&pair);
}

TEST(Transfer, AtomicsGiveBackWhatWasThere)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    uint64_t word = 40, *back = (uint64_t *)(void *)pair.side[0].buffer;
    memcpy(pair.side[1].buffer + TO, &word, 8);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr add = pair_wr(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
    struct ibv_send_wr swap = pair_wr(&pair, IBV_WR_ATOMIC_CMP_AND_SWP, &sge);
    add.wr.atomic.compare_add = 2;
    EXPECT_EQ(pair_send(&pair, &add), 0);
    EXPECT_EQ(*back, 40);
    swap.wr.atomic.compare_add = 41;
    swap.wr.atomic.swap = 99;
    EXPECT_EQ(pair_send(&pair, &swap), 0); // the comparison fails
    EXPECT_EQ(*back, 42);
    swap.wr.atomic.compare_add = 42;
    EXPECT_EQ(pair_send(&pair, &swap), 0);
    EXPECT_EQ(*back, 42);
    memcpy(&word, pair.side[1].buffer + TO, 8);
    EXPECT_EQ(word, 99);
    EXPECT_EQ(pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
    pair_fini(&pair);
}

TEST(Transfer, OfZeroBytesNeedsNoRegion)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_send_wr write = pair_wr(&pair, IBV_WR_RDMA_WRITE, NULL), send = pair_wr(&pair, IBV_WR_SEND, NULL);
    write.wr.rdma.rkey = 1;
    EXPECT_EQ(pair_send(&pair, &write), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(pair_receive(&pair.side[1], 3, 0, 0), 0);
    EXPECT_EQ(pair_send(&pair, &send), 0);
    EXPECT_EQ(pair_expect_wc(&pair.side[1], 3, IBV_WC_SUCCESS).byte_len, 0);
    pair_fini(&pair);
}

TEST(Transfer, CompletesSilentlyUnlessSignaled)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    wr.send_flags = 0;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    pair_expect_none(&pair.side[0]);
    wr.wr.rdma.rkey = 1; // errors always complete
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_REM_ACCESS_ERR);
    pair_fini(&pair);
}

// --- errors of reliable connections ---------------------------------------------------------------------------------

// The request fails with this status, and with it the queue pair: later requests are flushed.
static void expect_failure(struct pair *pair, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
    struct ibv_send_wr behind = *wr;
    behind.wr_id = 2;
    EXPECT_EQ(pair_send(pair, wr), 0);
    EXPECT_EQ(pair_send(pair, &behind), 0);
    (void)pair_expect_wc(&pair->side[0], 1, status);
    (void)pair_expect_wc(&pair->side[0], 2, IBV_WC_WR_FLUSH_ERR);
    expect_state(pair->side[0].qp, IBV_QPS_ERR);
}

TEST(Failure, LocalProtection)
{
    for (unsigned wrong = 0; wrong < 3; wrong++) {
        struct pair pair;
        pair_init(&pair);
        pair_connect(&pair, IBV_QPT_RC);
        struct ibv_sge sge = pair_sge(&pair.side[0], wrong == 1 ? PAIR_BYTES - 7 : 0, 8);
        sge.lkey = wrong == 0 ? sge.lkey + 1 : wrong == 2 ? pair.side[1].mr->lkey : sge.lkey;
        struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
        wr.wr.rdma.remote_addr = (uintptr_t)pair.side[1].buffer;
        expect_failure(&pair, &wr, IBV_WC_LOC_PROT_ERR);
        expect_state(pair.side[1].qp, IBV_QPS_RTS);
        pair_fini(&pair);
    }
}

TEST(Failure, LocalProtectionOfWhatComesBack)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_mr *readable = ibv_reg_mr(pair.side[0].pd, pair.side[0].buffer, 64, 0);
    struct ibv_sge sge = {(uintptr_t)pair.side[0].buffer, 8, readable->lkey};
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_READ, &sge);
    expect_failure(&pair, &wr, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(readable), 0);
    pair_fini(&pair);
}

TEST(Failure, LocalLength)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, MEMORY_MESSAGE_MAX + 1);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    expect_failure(&pair, &wr, IBV_WC_LOC_LEN_ERR);
    pair_fini(&pair);
}

TEST(Failure, LocalLengthOfAnAtomic)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 4);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
    expect_failure(&pair, &wr, IBV_WC_LOC_LEN_ERR);
    pair_fini(&pair);
}

// The peer's queue pair fails as well, and its program gets an event with the reason.
TEST(Failure, RemoteAccess)
{
    for (unsigned wrong = 0; wrong < 3; wrong++) {
        struct pair pair;
        pair_init(&pair);
        pair_connect(&pair, IBV_QPT_RC);
        struct ibv_sge sge = pair_sge(&pair.side[0], 0, 16);
        struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
        wr.wr.rdma.rkey += wrong == 0;
        wr.wr.rdma.remote_addr = (uintptr_t)pair.side[1].buffer + (wrong == 1 ? PAIR_BYTES - 15 : wrong == 2 ? -8 : 0);
        expect_failure(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
        expect_state(pair.side[1].qp, IBV_QPS_ERR);
        pair_expect_event(&pair.side[1], IBV_EVENT_QP_ACCESS_ERR);
        pair_expect_no_event(&pair.side[0]);
        pair_fini(&pair);
    }
}

TEST(Failure, NoByteIsWrittenByARequestThatIsRefused)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    memset(pair.side[0].buffer, 0xff, 16);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 16);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)pair.side[1].buffer + PAIR_BYTES - 15;
    expect_failure(&pair, &wr, IBV_WC_REM_ACCESS_ERR);
    static const uint8_t zeros[15];
    EXPECT_MEMEQ(pair.side[1].buffer + PAIR_BYTES - 15, zeros, 15);
    pair_fini(&pair);
}

TEST(Failure, RemoteInvalidRequestOfAnAtomicThatIsNotAligned)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
    wr.wr.atomic.remote_addr += 4;
    expect_failure(&pair, &wr, IBV_WC_REM_INV_REQ_ERR);
    pair_expect_event(&pair.side[1], IBV_EVENT_QP_REQ_ERR);
    pair_fini(&pair);
}

TEST(Failure, MessageLongerThanItsBuffer)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 9);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_receive(&pair.side[1], 4, 0, 8), 0);
    EXPECT_EQ(pair_receive(&pair.side[1], 5, 0, 8), 0);
    expect_failure(&pair, &wr, IBV_WC_REM_INV_REQ_ERR);
    (void)pair_expect_wc(&pair.side[1], 4, IBV_WC_LOC_LEN_ERR);
    (void)pair_expect_wc(&pair.side[1], 5, IBV_WC_WR_FLUSH_ERR);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

TEST(Failure, ReceiverWithoutBuffers)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    expect_failure(&pair, &wr, IBV_WC_RNR_RETRY_EXC_ERR);
    expect_state(pair.side[1].qp, IBV_QPS_RTS);
    pair_fini(&pair);
}

// 9.7.5.2.8: 7 means endless retries.
TEST(Failure, ReceiverWithoutBuffersIsWaitedForWithEndlessRetries)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_qp_attr attr = pair_attr(&pair.side[1], IBV_QPS_RTS);
    for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], state), 0);
    }
    attr.rnr_retry = 7;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, pair_mask(IBV_QPT_RC, IBV_QPS_RTS)), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    pair_expect_none(&pair.side[0]);
    EXPECT_EQ(pair_receive(&pair.side[1], 4, 0, 8), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    (void)pair_expect_wc(&pair.side[1], 4, IBV_WC_SUCCESS);
    pair_fini(&pair);
}

TEST(Failure, PeerThatIsGone)
{
    for (unsigned how = 0; how < 3; how++) {
        struct pair pair;
        pair_init(&pair);
        pair_connect(&pair, IBV_QPT_RC);
        struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
        struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
        if (how == 0) {
            EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
            pair.side[1].qp = NULL;
        } else if (how == 1) {
            EXPECT_EQ(pair_step(pair.side[1].qp, &pair.side[0], IBV_QPS_RESET), 0);
        } else {
            memory_world_cable(pair.world, 2, false);
            pair_expect_event(&pair.side[1], IBV_EVENT_PORT_ERR);
        }
        expect_failure(&pair, &wr, IBV_WC_RETRY_EXC_ERR);
        pair_fini(&pair);
    }
}

TEST(Failure, ReadsBeyondTheInitiatorsDepth)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_qp_attr attr = pair_attr(&pair.side[1], IBV_QPS_RTS);
    for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], state), 0);
    }
    attr.max_rd_atomic = 0;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, pair_mask(IBV_QPT_RC, IBV_QPS_RTS)), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_READ, &sge);
    expect_failure(&pair, &wr, IBV_WC_LOC_QP_OP_ERR);
    pair_fini(&pair);
}

// --- unreliable connections -----------------------------------------------------------------------------------------

// 9.8.2: the sender gets no error.
TEST(Unreliable, ErrorsOfThePeerAreNotSeen)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr send = pair_wr(&pair, IBV_WR_SEND, &sge), write = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    write.wr.rdma.rkey = 1;
    EXPECT_EQ(pair_send(&pair, &send), 0); // no buffer
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(pair_send(&pair, &write), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    expect_state(pair.side[1].qp, IBV_QPS_RTS);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

// 10.3.1: its own send errors stop only the send queue; the program may restart it.
TEST(Unreliable, SendQueueFailsAloneAndComesBack)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    sge.lkey = 1;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_LOC_PROT_ERR);
    expect_state(pair.side[0].qp, IBV_QPS_SQE);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_WR_FLUSH_ERR);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
    sge = pair_sge(&pair.side[0], 0, 8);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    pair_fini(&pair);
}
