// rsockets: the resources of a connection, and the data that its sides exchange at set-up.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

int rs_receive_post(const struct rs *rs)
{
    struct ibv_recv_wr wr = {0}, *bad;
    return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

static int buffers_make(struct rs *rs)
{
    size_t table = (sizeof *rs->table + 63) / 64 * 64, receive = (size_t)rs->receive_bytes,
           send = (size_t)rs->send_bytes;
    uint8_t *memory = aligned_alloc(4096, (table + receive + send + 4095) / 4096 * 4096);
    rs->messages = calloc((size_t)rs->rq_size + RS_EXTRA_RECEIVES, sizeof *rs->messages);
    if (memory == NULL || rs->messages == NULL) {
        free(memory);
        return -ENOMEM;
    }
    memset(memory, 0, table);
    rs->table = (struct rs_table *)(void *)memory;
    rs->receive_buffer = memory + table;
    rs->send_buffer = memory + table + receive;
    rs->mr = ibv_reg_mr(rs->id->pd, memory, table + receive + send, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return rs->mr != NULL ? 0 : -errno;
}

static int queues_make(struct rs *rs)
{
    struct ibv_device_attr attr;
    if (ibv_query_device(rs->id->verbs, &attr) != 0) {
        return -ENODEV;
    }
    int most = attr.max_qp_wr - RS_EXTRA_RECEIVES;
    rs->sq_size = rs->sq_size < most ? rs->sq_size : most;
    rs->rq_size = rs->rq_size < most ? rs->rq_size : most;
    rs->cq_channel = ibv_create_comp_channel(rs->id->verbs);
    if (rs->cq_channel == NULL || fcntl(rs->cq_channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        return -errno;
    }
    rs->cq = ibv_create_cq(rs->id->verbs, rs->sq_size + rs->rq_size + RS_CONTROLS + RS_EXTRA_RECEIVES, rs,
                           rs->cq_channel, 0);
    if (rs->cq == NULL) {
        return -errno;
    }
    struct ibv_qp_init_attr init = {.send_cq = rs->cq, .recv_cq = rs->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    init.cap = (struct ibv_qp_cap){.max_send_wr = (uint32_t)(rs->sq_size + RS_CONTROLS),
                                   .max_recv_wr = (uint32_t)(rs->rq_size + RS_EXTRA_RECEIVES),
                                   .max_send_sge = 1,
                                   .max_recv_sge = 1,
                                   .max_inline_data = (uint32_t)rs->inline_bytes};
    return rdma_create_qp(rs->id, NULL, &init) == 0 ? 0 : -errno;
}

int rs_transport_make(struct rs *rs)
{
    int status = queues_make(rs);
    status = status != 0 ? status : buffers_make(rs);
    for (int i = 0; status == 0 && i < rs->rq_size + RS_EXTRA_RECEIVES; i++) {
        status = rs_receive_post(rs);
    }
    rs->requests_free = (unsigned)rs->sq_size;
    rs->controls_free = RS_CONTROLS;
    rs->send_free = (unsigned)rs->send_bytes;
    // The first half is granted with the hello, the second one immediately after it.
    rs->give_offset = rs->give_bytes = (unsigned)rs->receive_bytes / RS_HALVES;
    rs->granted = (uint16_t)(rs->rq_size / 2);
    return status;
}

void rs_transport_end(struct rs *rs)
{
    if (rs->id != NULL && rs->id->qp != NULL) {
        rdma_destroy_qp(rs->id);
    }
    for (int i = 0; i < RS_IOMAPS_MAX; i++) {
        if (rs->mappings[i].mr != NULL) {
            (void)ibv_dereg_mr(rs->mappings[i].mr);
        }
    }
    if (rs->mr != NULL) {
        (void)ibv_dereg_mr(rs->mr);
    }
    if (rs->cq != NULL) {
        (void)ibv_destroy_cq(rs->cq);
    }
    if (rs->cq_channel != NULL) {
        (void)ibv_destroy_comp_channel(rs->cq_channel);
    }
    free(rs->table);
    free(rs->messages);
}

void rs_hello_fill(const struct rs *rs, struct rs_hello *hello)
{
    *hello = (struct rs_hello){.receives = (uint32_t)rs->rq_size, .iomaps = (uint32_t)rs->iomap_size};
    if (rs->mr != NULL) {
        hello->table = (struct rs_window){(uintptr_t)rs->table, rs->mr->rkey, sizeof *rs->table};
        hello->half =
            (struct rs_window){(uintptr_t)rs->receive_buffer, rs->mr->rkey, (uint32_t)rs->receive_bytes / RS_HALVES};
    }
}

void rs_connected(struct rs *rs)
{
    rs->table->halves[0] = rs->peer.half;
    rs->peer_half = 1;
    rs->may_send = (uint16_t)rs->peer.receives;
    rs->state = RS_CONNECTED;
    rs_grant(rs);
}
