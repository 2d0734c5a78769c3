// The device: its attributes, and contexts.
#include "verbs-shim/tca-verbs/tca_verbs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/backend/tca0.h"
#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/tca-verbs/internal.h"
#include "verbs-shim/libtca/tca.h"

#define REGIONS_MAX (1 << 24)

static uint64_t guid_of(const struct tca_verbs_device *device)
{
    return htobe64(TCA0_GUID_BASE + peach2_node(device->board) + 1);
}

union ibv_gid tcav_gid(uint32_t node)
{
    return (union ibv_gid){
        .global = {.subnet_prefix = htobe64(TCA0_GID_PREFIX), .interface_id = htobe64(TCA0_GUID_BASE + node + 1)}};
}

int tcav_query_device(void *object, struct ibverbs_device_info *info_out)
{
    *info_out = (struct ibverbs_device_info){
        .attr =
            {
                .fw_ver = TCA0_FIRMWARE,
                .node_guid = guid_of(object),
                .sys_image_guid = guid_of(object),
                .max_mr_size = UINT64_MAX,
                .page_size_cap = 4096,
                .vendor_id = TCA0_VENDOR_ID,
                .vendor_part_id = 2, // PEACH2
                .max_qp = TCAV_QPS_MAX,
                .max_qp_wr = TCAV_WRS_MAX,
                .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
                .max_sge = TCAV_SGES_MAX,
                .max_sge_rd = TCAV_SGES_MAX,
                .max_cq = 65536,
                .max_cqe = 1 << 20,
                .max_mr = REGIONS_MAX,
                .max_pd = 65536,
                .max_qp_rd_atom = TCAV_READS_MAX,
                .max_qp_init_rd_atom = TCAV_READS_MAX,
                .max_res_rd_atom = TCAV_READS_MAX * TCAV_QPS_MAX,
                .atomic_cap = IBV_ATOMIC_HCA,
                .max_ah = 65536,
                .max_srq = 65536,
                .max_srq_wr = TCAV_WRS_MAX,
                .max_srq_sge = TCAV_SGES_MAX,
                .max_pkeys = 1,
                .local_ca_ack_delay = 0,
                .phys_port_cnt = 1,
            },
        .max_inline_bytes = TCAV_INLINE_BYTES,
        .qp_types = 1u << IBV_QPT_RC | 1u << IBV_QPT_UD,
        .send_ops = ibverbs_opcode_operations(HCA_ON_TCA0),
        .completion_vectors = 1,
    };
    return 0;
}

// A cable of the fabric is PCIe Gen2 x8: 4 lanes of 10 Gb/s is the nearest rate that verbs can express.
int tcav_query_port(void *object, unsigned port, struct ibv_port_attr *attr_out)
{
    const struct tca_verbs_device *device = object;
    (void)port;
    *attr_out = (struct ibv_port_attr){
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = 1,
        .max_msg_sz = TCAV_MESSAGE_BYTES_MAX,
        .pkey_tbl_len = 1,
        .lid = (uint16_t)(peach2_node(device->board) + 1),
        .max_vl_num = 1,
        .active_width = 2,
        .active_speed = 8,
        .phys_state = 5,
        .link_layer = IBV_LINK_LAYER_INFINIBAND,
    };
    return 0;
}

int tcav_query_gid(void *object, unsigned port, unsigned index, union ibv_gid *gid_out)
{
    (void)port;
    (void)index;
    const struct tca_verbs_device *device = object;
    *gid_out = tcav_gid(peach2_node(device->board));
    return 0;
}

int tcav_query_pkey(void *object, unsigned port, unsigned index, uint16_t *pkey_out)
{
    (void)object;
    (void)port;
    (void)index;
    *pkey_out = 0xffff;
    return 0;
}

// --- contexts -------------------------------------------------------------------------------------------------------

int tcav_context_open(void *object, struct backend_process *process, void **context_out)
{
    struct tca_verbs_device *device = object;
    if (device->context != NULL) {
        tcav_pay(device->context, BACKEND_COST_CALL, 1);
        device->context->opened++;
        *context_out = device->context;
        return 0;
    }
    int error = backend_board_claim(&process->backend);
    if (error != 0) {
        return error;
    }
    int tca = tca_context_begin(process);
    struct tcav_context *context = tca == tcaSuccess ? calloc(1, sizeof *context) : NULL;
    if (context == NULL) {
        backend_board_release(&process->backend);
        return tca == tcaErrorIO ? -EIO : -ENOMEM;
    }
    context->device = device;
    context->opened = 1;
    context->process = process;
    context->backend = process->backend;
    context->node = peach2_node(process->board);
    context->moves_end = &context->move;
    device->context = context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    error = peach2_open_shared(process->board, &context->backend, &context->board);
    if (error == 0 && device->progress_thread) {
        error = tcav_thread_start(context);
    }
    if (error != 0) {
        peach2_close(context->board);
        device->context = NULL;
        free(context);
        backend_board_release(&process->backend);
        return error;
    }
    *context_out = context;
    return 0;
}

static void farewell(struct tcav_context *context)
{
    (void)tcav_channel_drain(context);
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        if (context->peers[node] != NULL && node != context->node) {
            tcav_peer_bye(context->peers[node]);
            (void)tcav_channel_drain(context);
        }
    }
}

// A region that was being registered when the process ended: libibverbs does not know it yet.
static void leftovers_free(struct tcav_context *context)
{
    while (context->mrs != NULL) {
        struct tcav_mr *mr = context->mrs;
        context->mrs = mr->next;
        free(mr);
    }
    context->pds = 0;
}

int tcav_context_close(void *object)
{
    struct tcav_context *context = object;
    if (context->opened > 1) {
        tcav_pay(context, BACKEND_COST_CALL, 1);
        context->opened--;
        return 0;
    }
    if (context->abandoned) {
        leftovers_free(context);
    }
    if (context->qps != NULL || context->cqs != NULL || context->srqs != NULL || context->mrs != NULL ||
        context->pds != 0) {
        return -EBUSY;
    }
    tcav_pay(context, BACKEND_COST_CALL, 1);
    if (!context->abandoned) {
        tcav_thread_stop(context);
        farewell(context);
    }
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        if (context->peers[node] != NULL) {
            tcav_peer_free(context->peers[node]);
        }
    }
    if (!context->abandoned) {
        tcav_channels_close(context);
        if (context->datagrams) {
            peach2_interrupt_disable(context->board);
        }
        if (context->gdr != NULL) {
            (void)gdr_close(context->gdr);
        }
    }
    while (context->events != NULL) {
        struct tcav_event_node *node = context->events;
        context->events = node->next;
        free(node);
    }
    peach2_close(context->board);
    context->device->context = NULL;
    if (!context->abandoned) {
        backend_board_release(&context->backend);
    }
    free(context);
    return 0;
}

void tcav_context_abandon(void *object)
{
    struct tcav_context *context = object;
    context->abandoned = true;
}

// --- protection domains ---------------------------------------------------------------------------------------------

int tcav_pd_create(void *object, void **pd_out)
{
    struct tcav_context *context = object;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_pd *pd = calloc(1, sizeof *pd);
    if (pd == NULL) {
        return -ENOMEM;
    }
    pd->context = context;
    context->pds++;
    *pd_out = pd;
    return 0;
}

int tcav_pd_destroy(void *object)
{
    struct tcav_pd *pd = object;
    if (pd->users != 0 && !pd->context->abandoned) {
        return -EBUSY;
    }
    tcav_pay(pd->context, BACKEND_COST_CALL, 1);
    pd->context->pds--;
    free(pd);
    return 0;
}
