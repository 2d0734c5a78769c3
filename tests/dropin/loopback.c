// A program for the system's libibverbs that talks to itself over its first device: a send through a completion channel
// whose descriptor poll(2) watches, an RDMA write, and a child that asks for devices of its own. It ends with status 0,
// or says what was wrong.
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define BYTES       4096

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "loopback: line %d: not %s\n", __LINE__, #condition);                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct loop {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
};

static void loop_open(struct loop *loop)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(list != NULL && list[0] != NULL);
    loop->context = ibv_open_device(list[0]);
    CHECK(loop->context != NULL);
    ibv_free_device_list(list);
    loop->pd = ibv_alloc_pd(loop->context);
    loop->channel = ibv_create_comp_channel(loop->context);
    CHECK(loop->pd != NULL && loop->channel != NULL);
    loop->cq = ibv_create_cq(loop->context, 16, loop, loop->channel, 0);
    loop->buffer = aligned_alloc(4096, 2 * BYTES);
    CHECK(loop->cq != NULL && loop->buffer != NULL);
    loop->mr = ibv_reg_mr(loop->pd, loop->buffer, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(loop->mr != NULL);
}

static void loop_connect(struct loop *loop)
{
    struct ibv_qp_init_attr init = {.send_cq = loop->cq,
                                    .recv_cq = loop->cq,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
    struct ibv_port_attr port;
    CHECK(ibv_query_port(loop->context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE);
    loop->qp = ibv_create_qp(loop->pd, &init);
    CHECK(loop->qp != NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = loop->qp->qp_num,
                                .ah_attr = {.dlid = port.lid, .port_num = 1},
                                .min_rnr_timer = 12};
    CHECK(ibv_modify_qp(loop->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    CHECK(ibv_modify_qp(loop->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void post(struct loop *loop, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {.addr = (uintptr_t)loop->buffer, .length = BYTES, .lkey = loop->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)loop->buffer + BYTES;
    wr.wr.rdma.rkey = loop->mr->rkey;
    CHECK(ibv_post_send(loop->qp, &wr, &bad) == 0);
}

static void *send_later(void *arg)
{
    (void)usleep(20000);
    post(arg, IBV_WR_SEND);
    return NULL;
}

// The other thread sends while this one waits for the descriptor.
static void send_with_event(struct loop *loop)
{
    struct ibv_sge sge = {.addr = (uintptr_t)loop->buffer + BYTES, .length = BYTES, .lkey = loop->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    struct pollfd waits = {.fd = loop->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *user;
    struct ibv_wc wc[2];
    pthread_t thread;
    memset(loop->buffer, 0x5a, BYTES);
    CHECK(ibv_post_recv(loop->qp, &receive, &bad) == 0);
    CHECK(ibv_req_notify_cq(loop->cq, 0) == 0);
    CHECK(poll(&waits, 1, 0) == 0);
    CHECK(pthread_create(&thread, NULL, send_later, loop) == 0);
    CHECK(poll(&waits, 1, PATIENCE_MS) == 1);
    CHECK(ibv_get_cq_event(loop->channel, &cq, &user) == 0 && cq == loop->cq && user == loop);
    CHECK(poll(&waits, 1, 0) == 0); // taken
    ibv_ack_cq_events(cq, 1);
    (void)pthread_join(thread, NULL);
    for (int got = 0; got < 2;) {
        int count = ibv_poll_cq(cq, 2 - got, wc + got);
        CHECK(count >= 0);
        got += count;
    }
    CHECK(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
    CHECK(memcmp(loop->buffer, loop->buffer + BYTES, BYTES) == 0);
}

static void write_remote(struct loop *loop)
{
    struct ibv_wc wc;
    int count;
    memset(loop->buffer, 0x33, BYTES);
    post(loop, IBV_WR_RDMA_WRITE);
    do {
        count = ibv_poll_cq(loop->cq, 1, &wc);
    } while (count == 0);
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE);
    CHECK(loop->buffer[2 * BYTES - 1] == 0x33);
}

// It has nothing of its parent's, and can open devices of its own.
static void child_try(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct loop loop = {0};
        loop_open(&loop);
        _exit(loop.mr != NULL ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void loop_close(struct loop *loop)
{
    CHECK(ibv_destroy_cq(loop->cq) == EBUSY);
    CHECK(ibv_destroy_qp(loop->qp) == 0);
    CHECK(ibv_destroy_cq(loop->cq) == 0);
    CHECK(ibv_destroy_comp_channel(loop->channel) == 0);
    CHECK(ibv_dereg_mr(loop->mr) == 0);
    CHECK(ibv_dealloc_pd(loop->pd) == 0);
    CHECK(ibv_close_device(loop->context) == 0);
    free(loop->buffer);
}

int main(void)
{
    struct loop loop = {0};
    CHECK(ibv_fork_init() == 0);
    loop_open(&loop);
    loop_connect(&loop);
    send_with_event(&loop);
    write_remote(&loop);
    child_try();
    loop_close(&loop);
    return 0;
}
