#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include "loop.h"

#include <errno.h>

static void queue_pair_create(struct loop *loop)
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
    loop->peer = (struct loop_end){port.lid, loop->qp->qp_num, (uintptr_t)loop->buffer, loop->mr->rkey};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

void loop_open(struct loop *loop, uint32_t bytes)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    loop->bytes = bytes;
    CHECK(list != NULL && list[0] != NULL);
    loop->context = ibv_open_device(list[0]);
    CHECK(loop->context != NULL);
    ibv_free_device_list(list);
    loop->pd = ibv_alloc_pd(loop->context);
    loop->channel = ibv_create_comp_channel(loop->context);
    CHECK(loop->pd != NULL && loop->channel != NULL);
    loop->cq = ibv_create_cq(loop->context, 16, loop, loop->channel, 0);
    loop->buffer = aligned_alloc(4096, 2 * (size_t)bytes);
    CHECK(loop->cq != NULL && loop->buffer != NULL);
    loop->mr = ibv_reg_mr(loop->pd, loop->buffer, 2 * (size_t)bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(loop->mr != NULL);
    queue_pair_create(loop);
}

void loop_connect(struct loop *loop)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = loop->peer.qpn,
                               .ah_attr = {.dlid = loop->peer.lid, .port_num = 1},
                               .min_rnr_timer = 12};
    CHECK(ibv_modify_qp(loop->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    CHECK(ibv_modify_qp(loop->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void loop_post(struct loop *loop, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {.addr = (uintptr_t)loop->buffer, .length = loop->bytes, .lkey = loop->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = loop->peer.buffer + loop->bytes;
    wr.wr.rdma.rkey = loop->peer.rkey;
    CHECK(ibv_post_send(loop->qp, &wr, &bad) == 0);
}

void loop_completion_take(struct loop *loop)
{
    struct ibv_wc wc;
    int count;
    do {
        count = ibv_poll_cq(loop->cq, 1, &wc);
    } while (count == 0);
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
}

void loop_close(struct loop *loop)
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

int loop_meet(const char *host, uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (host == NULL) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
        return accept(fd, NULL, NULL);
    }
    struct addrinfo *found;
    CHECK(getaddrinfo(host, NULL, &(struct addrinfo){.ai_family = AF_INET}, &found) == 0);
    address.sin_addr = ((struct sockaddr_in *)found->ai_addr)->sin_addr;
    CHECK(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}
