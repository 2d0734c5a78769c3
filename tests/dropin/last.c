// What was posted leaves by itself: last WAY [HOST]. The first program (without HOST) posts datagrams, and does not call its
// library again: it sleeps, waits for a lock or for a thread that sleeps, or ends (WAY). The second one counts them.
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"

enum { COUNT = 20, BYTES = 64, GRH = 40, ROOM = COUNT * 128, PORT = 18518, QKEY = 0x1111, PAUSE_US = 5000 };

struct end {
    uint32_t qpn, lid;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *sleeper(void *held)
{
    (void)usleep(PAUSE_US);
    if (held != NULL) {
        CHECK(pthread_mutex_unlock(held) == 0);
    }
    return NULL;
}

static void go(const char *way)
{
    pthread_t thread;
    if (strcmp(way, "sleep") == 0) {
        (void)usleep(PAUSE_US);
    } else if (strcmp(way, "join") == 0) {
        CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    } else if (strcmp(way, "lock") == 0) {
        CHECK(pthread_mutex_lock(&lock) == 0);
        CHECK(pthread_create(&thread, NULL, sleeper, &lock) == 0);
        CHECK(pthread_mutex_lock(&lock) == 0);
    } else {
        CHECK(strcmp(way, "end") == 0);
    }
}

static struct ibv_qp *datagrams(const struct loop *loop, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = COUNT, .max_recv_wr = COUNT, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(loop->pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    CHECK(qp != NULL);
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
    attr.qp_state = IBV_QPS_RTR;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    return qp;
}

int main(int count, char **arguments)
{
    const char *host = count > 2 ? arguments[2] : NULL;
    struct loop loop = {0};
    struct ibv_port_attr port;
    CHECK(count > 1);
    loop_open(&loop, ROOM);
    CHECK(ibv_query_port(loop.context, 1, &port) == 0);
    struct ibv_cq *cq = ibv_create_cq(loop.context, COUNT, NULL, NULL, 0);
    struct ibv_qp *qp = datagrams(&loop, cq);
    struct ibv_sge sge = {.addr = (uintptr_t)loop.buffer, .length = BYTES + GRH, .lkey = loop.mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(ibv_post_recv(qp, &receive, &bad_receive) == 0);
    }
    int fd = loop_meet(host, PORT);
    struct end own = {qp->qp_num, port.lid}, peer;
    CHECK(write(fd, &own, sizeof own) == sizeof own);
    CHECK(recv(fd, &peer, sizeof peer, MSG_WAITALL) == sizeof peer);
    if (host == NULL) {
        struct ibv_ah *ah = ibv_create_ah(loop.pd, &(struct ibv_ah_attr){.dlid = (uint16_t)peer.lid, .port_num = 1});
        struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = {ah, peer.qpn, QKEY}},
                           *bad;
        sge.length = BYTES;
        for (unsigned i = 0; i < COUNT; i++) {
            CHECK(ibv_post_send(qp, &send, &bad) == 0);
        }
        go(arguments[1]);
        return 0;
    }
    struct ibv_wc wc;
    for (unsigned taken = 0; taken < COUNT;) {
        int found = ibv_poll_cq(cq, 1, &wc);
        CHECK(found >= 0 && (found == 0 || (wc.status == IBV_WC_SUCCESS && wc.byte_len == BYTES + GRH)));
        taken += (unsigned)found;
    }
    return 0;
}
