// The device: one context, one completion queue for all queue pairs, and a UD queue pair for connection set-up.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs-shim/acp/internal.h"

static int port_find(struct acpb_process *process)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(process->context, &attr);
    for (uint8_t port = 1; error == 0 && port <= attr.phys_port_cnt; port++) {
        error = ibv_query_port(process->context, port, &process->port);
        if (error == 0 && process->port.state == IBV_PORT_ACTIVE) {
            process->port_number = port;
            return 0;
        }
    }
    return error != 0 ? -error : -ENODEV;
}

static int context_open(struct acpb_process *process)
{
    const char *wanted = process->boot.device;
    int count = 0, error = -ENODEV;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list != NULL && i < count && error != 0; i++) {
        if (wanted != NULL && strcmp(ibv_get_device_name(list[i]), wanted) != 0) {
            continue;
        }
        process->context = ibv_open_device(list[i]);
        error = process->context != NULL ? port_find(process) : -errno;
        if (error != 0 && process->context != NULL) {
            (void)ibv_close_device(process->context);
            process->context = NULL;
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (error != 0) {
        fprintf(stderr, "acp: %s: %s\n", wanted != NULL ? wanted : "no device with an active port", strerror(-error));
    }
    return error;
}

// Each queue pair has one outstanding request. Only the UD queue pair has receives.
static int queue_create(struct acpb_process *process)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(process->context, &attr);
    if (error != 0) {
        return -error;
    }
    uint64_t entries = (uint64_t)process->ranks + 2 * ACPB_MEETINGS;
    entries = entries < (uint64_t)attr.max_cqe ? entries : (uint64_t)attr.max_cqe;
    process->cq = ibv_create_cq(process->context, (int)entries, NULL, NULL, 0);
    return process->cq != NULL ? 0 : -errno;
}

static int meeting_ready(struct acpb_process *process)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = process->port_number, .qkey = ACPB_MEETING_QKEY};
    int error = ibv_modify_qp(process->meeting_qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    if (error == 0) {
        error = ibv_modify_qp(process->meeting_qp, &attr, IBV_QP_STATE);
    }
    attr.qp_state = IBV_QPS_RTS;
    if (error == 0) {
        error = ibv_modify_qp(process->meeting_qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    }
    return -error;
}

static int meeting_create(struct acpb_process *process)
{
    struct ibv_qp_init_attr init = {.send_cq = process->cq,
                                    .recv_cq = process->cq,
                                    .cap = {ACPB_MEETINGS, ACPB_MEETINGS, 1, 1, 0},
                                    .qp_type = IBV_QPT_UD,
                                    .sq_sig_all = 1};
    process->meeting_qp = ibv_create_qp(process->pd, &init);
    if (process->meeting_qp == NULL) {
        return -errno;
    }
    process->queue_pairs++;
    return meeting_ready(process);
}

int acpb_device_open(struct acpb_process *process)
{
    int error = context_open(process);
    if (error != 0) {
        return error;
    }
    process->pd = ibv_alloc_pd(process->context);
    error = process->pd != NULL ? queue_create(process) : -errno;
    if (error == 0) {
        error = meeting_create(process);
    }
    if (error != 0) {
        fprintf(stderr, "acp: %s: %s\n", ibv_get_device_name(process->context->device), strerror(-error));
        acpb_device_close(process);
    }
    return error;
}

void acpb_device_close(struct acpb_process *process)
{
    if (process->meeting_qp != NULL) {
        (void)ibv_destroy_qp(process->meeting_qp);
        process->queue_pairs--;
    }
    for (unsigned i = 0; i < ACPB_MEETINGS; i++) {
        if (process->meeting_ahs[i] != NULL) {
            (void)ibv_destroy_ah(process->meeting_ahs[i]);
            process->meeting_ahs[i] = NULL;
        }
    }
    if (process->cq != NULL) {
        (void)ibv_destroy_cq(process->cq);
    }
    if (process->pd != NULL) {
        (void)ibv_dealloc_pd(process->pd);
    }
    if (process->context != NULL) {
        (void)ibv_close_device(process->context);
    }
    process->meeting_qp = NULL;
    process->cq = NULL;
    process->pd = NULL;
    process->context = NULL;
}
