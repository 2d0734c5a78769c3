#include "pair.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void pair_need(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static int socket_make(const char *server)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *address;
    pair_need(getaddrinfo(server, "18515", &hints, &address) == 0, "getaddrinfo");
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (server != NULL) {
        pair_need(connect(fd, address->ai_addr, address->ai_addrlen) == 0, "connect");
    } else {
        pair_need(bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
        int accepted = accept(fd, NULL, NULL);
        close(fd);
        fd = accepted;
    }
    freeaddrinfo(address);
    return fd;
}

static struct ibv_context *device_open(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    for (int i = 0; list != NULL && list[i] != NULL && context == NULL; i++) {
        context = strcmp(ibv_get_device_name(list[i]), name) == 0 ? ibv_open_device(list[i]) : NULL;
    }
    ibv_free_device_list(list);
    return context;
}

void pair_open(struct pair *pair, const char *device, const char *server)
{
    struct ibv_port_attr port;
    pair->server = server == NULL;
    pair->context = device_open(device);
    pair_need(pair->context != NULL, device);
    pair->pd = ibv_alloc_pd(pair->context);
    pair->cq = ibv_create_cq(pair->context, pair->cq_entries, NULL, NULL, 0);
    pair->other_cq = pair->two_cqs ? ibv_create_cq(pair->context, pair->cq_entries, NULL, NULL, 0) : pair->cq;
    pair->buffer = aligned_alloc(4096, PAIR_BYTES);
    memset(pair->buffer, 0, PAIR_BYTES);
    pair->mr = ibv_reg_mr(pair->pd, pair->buffer, PAIR_BYTES,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    struct ibv_qp_init_attr init = {
        .send_cq = pair->cq,
        .recv_cq = pair->other_cq,
        .cap = pair->cap.max_send_wr != 0 ? pair->cap : (struct ibv_qp_cap){PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = !pair->selective};
    pair->qp = ibv_create_qp(pair->pd, &init);
    pair_need(pair->mr != NULL && pair->qp != NULL && ibv_query_port(pair->context, 1, &port) == 0, "objects");
    pair->own = (struct pair_address){pair->qp->qp_num, pair->mr->rkey, (uintptr_t)pair->buffer, port.lid};
    pair->socket = socket_make(server);
    pair_need(write(pair->socket, &pair->own, sizeof pair->own) == sizeof pair->own &&
                  read(pair->socket, &pair->peer, sizeof pair->peer) == sizeof pair->peer,
              "exchange");
}

int pair_to_init(struct pair *pair)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    return ibv_modify_qp(pair->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int pair_to_rtr(struct pair *pair)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = pair->peer.qpn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .ah_attr = {.dlid = pair->peer.lid, .port_num = 1}};
    return ibv_modify_qp(pair->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int pair_to_rts(struct pair *pair)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .timeout = 8,
                               .retry_cnt = 2,
                               .rnr_retry = 3,
                               .max_rd_atomic = pair->reads != 0 ? pair->reads : 1};
    return ibv_modify_qp(pair->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

void pair_meet(struct pair *pair)
{
    char byte = 'x';
    pair_need(write(pair->socket, &byte, 1) == 1, "write");
    (void)!read(pair->socket, &byte, 1); // fails if the other process has ended
}

void pair_connect(struct pair *pair)
{
    errno = pair_to_init(pair);
    errno = errno != 0 ? errno : pair_to_rtr(pair);
    errno = errno != 0 ? errno : pair_to_rts(pair);
    pair_need(errno == 0, "ibv_modify_qp");
    pair_meet(pair);
}

int pair_receive(struct pair *pair, uint64_t wr_id, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)pair->buffer + PAIR_BYTES / 2, bytes, pair->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(pair->qp, &wr, &bad);
}

int pair_send(struct pair *pair, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t bytes, bool signaled)
{
    struct ibv_sge sge = {(uintptr_t)pair->buffer, bytes, pair->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = signaled ? IBV_SEND_SIGNALED : 0},
                       *bad;
    wr.wr.rdma.remote_addr = pair->peer.address;
    wr.wr.rdma.rkey = pair->peer.rkey;
    return ibv_post_send(pair->qp, &wr, &bad);
}

struct ibv_wc pair_wait(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    do {
        count = ibv_poll_cq(cq, 1, &wc);
    } while (count == 0);
    pair_need(count > 0, "ibv_poll_cq");
    return wc;
}

void pair_close(struct pair *pair)
{
    pair_meet(pair);
    pair_need(ibv_destroy_qp(pair->qp) == 0, "ibv_destroy_qp");
    pair_need(pair->mr == NULL || ibv_dereg_mr(pair->mr) == 0, "ibv_dereg_mr");
    pair_need(ibv_destroy_cq(pair->cq) == 0, "ibv_destroy_cq");
    pair_need(pair->other_cq == pair->cq || ibv_destroy_cq(pair->other_cq) == 0, "ibv_destroy_cq");
    pair_need(ibv_dealloc_pd(pair->pd) == 0 && ibv_close_device(pair->context) == 0, "ibv_close_device");
    free(pair->buffer);
    close(pair->socket);
}
