// A small program on libibverbs, as an example of a program under test without hardware: a region, a queue pair that is
// connected to itself, one write, and a check of every byte. Prints the operation's time. Ends with 0 if all is right.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 4096 };

static void need(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "verbs_check: %s failed\n", what);
        exit(1);
    }
}

static void connect_to_itself(struct ibv_qp *qp, uint16_t lid)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12,
                             .ah_attr = {.dlid = lid, .port_num = 1}};
    need(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    need(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void write_half(struct ibv_qp *qp, struct ibv_cq *cq, const struct ibv_mr *mr, unsigned char *memory)
{
    struct ibv_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)memory + BYTES, mr->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    double start = now_us();
    need(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    double end = now_us();
    need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    need(memcmp(memory, memory + BYTES, BYTES) == 0, "the comparison of what was written");
    printf("%d B written in %.2f us\n", BYTES, end - start);
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list != NULL && list[0] != NULL, "finding a device");
    struct ibv_context *context = ibv_open_device(list[0]);
    need(context != NULL, "ibv_open_device");
    struct ibv_port_attr port;
    need(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    unsigned char *memory = calloc(2, BYTES);
    need(pd != NULL && cq != NULL && memory != NULL, "ibv_alloc_pd or ibv_create_cq");
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, 2 * (size_t)BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr attr = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    need(mr != NULL && qp != NULL, "ibv_reg_mr or ibv_create_qp");
    connect_to_itself(qp, port.lid);
    for (int i = 0; i < BYTES; i++) {
        memory[i] = (unsigned char)(i * 7 + 1);
    }
    write_half(qp, cq, mr, memory);
    need(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 &&
             ibv_close_device(context) == 0,
         "cleaning up");
    ibv_free_device_list(list);
    free(memory);
    return 0;
}
