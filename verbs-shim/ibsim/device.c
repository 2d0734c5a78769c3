// Attributes of the device, contexts and their events, protection domains, regions, address handles.
#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibsim/ibsim_internal.h"

#define DEFAULT_PKEY 0xffff
#define GROUPS       8192 // as ibv_devinfo prints them for these adapters
#define GROUP_QPS    248

// --- queries ---------------------------------------------------------------------------------------------------------

static int query_device(void *device, struct ibverbs_device_info *info_out)
{
    const struct backend *backend = device;
    struct hca_device_info hca;
    struct hca_port_info port;
    int status = hca_query_device(backend, &hca);
    status = status != 0 ? status : hca_query_port(backend, &port);
    if (status != 0) {
        return status;
    }
    *info_out = (struct ibverbs_device_info){
        .attr = {.fw_ver = HCA_FIRMWARE,
                 .node_guid = htobe64(port.guid - 1), // as on these adapters
                 .sys_image_guid = htobe64(port.guid + 2),
                 .max_mr_size = UINT64_MAX,
                 .page_size_cap = 4096,
                 .vendor_id = HCA_VENDOR_ID,
                 .vendor_part_id = hca.part_id,
                 .max_qp = (int)hca.max_qp,
                 .max_qp_wr = (int)hca.max_qp_entries,
                 .device_cap_flags = IBV_DEVICE_XRC,
                 .max_sge = (int)hca.max_segments,
                 .max_sge_rd = (int)hca.max_segments,
                 .max_cq = (int)hca.max_cq,
                 .max_cqe = (int)hca.max_cq_entries,
                 .max_mr = (int)hca.max_mr,
                 .max_pd = (int)hca.max_pd,
                 .max_qp_rd_atom = (int)hca.max_responder_reads,
                 .max_res_rd_atom = (int)(hca.max_responder_reads * hca.max_qp),
                 .max_qp_init_rd_atom = (int)hca.max_initiator_reads,
                 .atomic_cap = IBV_ATOMIC_HCA,
                 .max_ah = INT_MAX, // limited only by the driver's memory
                 .max_mcast_grp = GROUPS,
                 .max_mcast_qp_attach = GROUP_QPS,
                 .max_total_mcast_qp_attach = GROUPS * GROUP_QPS,
                 .max_srq = (int)hca.max_srq,
                 .max_srq_wr = (int)hca.max_srq_entries,
                 .max_srq_sge = (int)hca.max_segments,
                 .max_pkeys = 1,
                 .phys_port_cnt = 1},
        .max_inline_bytes = hca.max_inline_bytes,
        .qp_types =
            1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD | 1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_XRC_RECV,
        .send_ops = ibverbs_opcode_operations(HCA_ON_RC),
        .completion_vectors = 1,
    };
    return 0;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 256u << mtu <= bytes) {
        mtu++;
    }
    return mtu;
}

static int query_port(void *device, unsigned number, struct ibv_port_attr *attr_out)
{
    const struct backend *backend = device;
    struct hca_device_info hca;
    struct hca_port_info port;
    (void)number; // there is only one
    int status = hca_query_device(backend, &hca);
    status = status != 0 ? status : hca_query_port(backend, &port);
    if (status != 0) {
        return status;
    }
    *attr_out = (struct ibv_port_attr){
        .state = port.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = mtu_code(port.max_mtu_bytes),
        .active_mtu = mtu_code(port.active_mtu_bytes),
        .gid_tbl_len = 1,
        .max_msg_sz = hca.max_message_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)hca.max_message_bytes,
        .pkey_tbl_len = 1,
        .lid = port.lid,
        .sm_lid = port.active ? HCA_MANAGER_LID : 0,
        .active_width = 2, // 4x
        .active_speed = hca_speed_of(port.rate_mbps),
        .phys_state = port.active ? 5 : 2, // IBA 14.2.5.6: LinkUp, Polling
        .link_layer = IBV_LINK_LAYER_INFINIBAND,
    };
    return 0;
}

static int query_gid(void *device, unsigned number, unsigned index, union ibv_gid *gid_out)
{
    struct hca_port_info port;
    (void)number, (void)index;
    int status = hca_query_port(device, &port);
    if (status == 0) {
        gid_out->global.subnet_prefix = htobe64(port.gid_prefix);
        gid_out->global.interface_id = htobe64(port.guid);
    }
    return status;
}

static int query_pkey(void *device, unsigned number, unsigned index, uint16_t *pkey_out)
{
    (void)device, (void)number, (void)index;
    *pkey_out = DEFAULT_PKEY;
    return 0;
}

// --- contexts and events ---------------------------------------------------------------------------------------------

static int open_context(void *device, struct backend_process *process, void **context_out)
{
    struct ibsim_context *context = calloc(1, sizeof *context);
    (void)process; // the device is the backend
    if (context == NULL) {
        return -ENOMEM;
    }
    int status = hca_open(device, &context->hca);
    if (status != 0) {
        free(context);
        return status;
    }
    *context_out = context;
    return 0;
}

static int close_context(void *object)
{
    struct ibsim_context *context = object;
    int status = hca_close(context->hca);
    if (status == 0) {
        ibsim_scratch_free(&context->scratch);
        free(context);
    }
    return status;
}

// The driver's destroy calls are commands, which take no time.
static void abandon_context(void *context)
{
    (void)context;
}

static enum ibv_event_type event_type(enum hca_event_type type)
{
    static const enum ibv_event_type types[HCA_EVENTS] = {
        [HCA_EVENT_CQ_ERROR] = IBV_EVENT_CQ_ERR,
        [HCA_EVENT_QP_FATAL] = IBV_EVENT_QP_FATAL,
        [HCA_EVENT_QP_REQUEST_ERROR] = IBV_EVENT_QP_REQ_ERR,
        [HCA_EVENT_QP_ACCESS_ERROR] = IBV_EVENT_QP_ACCESS_ERR,
        [HCA_EVENT_COMMUNICATION_ESTABLISHED] = IBV_EVENT_COMM_EST,
        [HCA_EVENT_SEND_QUEUE_DRAINED] = IBV_EVENT_SQ_DRAINED,
        [HCA_EVENT_LAST_WQE_REACHED] = IBV_EVENT_QP_LAST_WQE_REACHED,
        [HCA_EVENT_SRQ_ERROR] = IBV_EVENT_SRQ_ERR,
        [HCA_EVENT_SRQ_LIMIT] = IBV_EVENT_SRQ_LIMIT_REACHED,
        [HCA_EVENT_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
        [HCA_EVENT_PORT_ERROR] = IBV_EVENT_PORT_ERR,
        [HCA_EVENT_DEVICE_FATAL] = IBV_EVENT_DEVICE_FATAL,
    };
    return types[type];
}

static bool event_waits(const void *context)
{
    return hca_event_waits(((const struct ibsim_context *)context)->hca);
}

static int event_get(void *context, uint64_t timeout_ns, struct ibverbs_event *event_out)
{
    _Static_assert(IBVERBS_NO_WAIT == HCA_NO_WAIT && IBVERBS_FOR_EVER == 0, "the driver's timeouts");
    struct hca_event event;
    int status = hca_event_get(((struct ibsim_context *)context)->hca, timeout_ns, &event);
    if (status == 0) {
        bool completion = event.type == HCA_EVENT_COMPLETION;
        *event_out = (struct ibverbs_event){.completion = completion, .user = event.user, .port = 1};
        event_out->type = completion ? event_out->type : event_type(event.type);
    }
    return status;
}

// --- protection domains, regions, address handles --------------------------------------------------------------------

static int pd_create(void *context, void **pd_out)
{
    struct ibsim_pd *pd = calloc(1, sizeof *pd);
    if (pd == NULL) {
        return -ENOMEM;
    }
    pd->context = context;
    int status = hca_pd_create(pd->context->hca, &pd->hca);
    if (status != 0) {
        free(pd);
        return status;
    }
    *pd_out = pd;
    return 0;
}

static int pd_destroy(void *pd)
{
    int status = hca_pd_destroy(((struct ibsim_pd *)pd)->hca);
    if (status == 0) {
        free(pd);
    }
    return status;
}

static int xrcd_create(void *context, void **xrcd_out)
{
    struct ibsim_xrcd *xrcd = calloc(1, sizeof *xrcd);
    if (xrcd == NULL) {
        return -ENOMEM;
    }
    xrcd->context = context;
    int status = hca_xrcd_create(xrcd->context->hca, &xrcd->hca);
    if (status != 0) {
        free(xrcd);
        return status;
    }
    *xrcd_out = xrcd;
    return 0;
}

static int xrcd_destroy(void *xrcd)
{
    int status = hca_xrcd_destroy(((struct ibsim_xrcd *)xrcd)->hca);
    if (status == 0) {
        free(xrcd);
    }
    return status;
}

static int mr_register(void *object, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                       uint32_t *rkey_out)
{
    _Static_assert((int)HCA_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE && (int)HCA_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
                       (int)HCA_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
                       (int)HCA_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC,
                   "the driver's access flags are libibverbs'");
    const uint32_t known = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
    hca_pd_t *pd = ((struct ibsim_pd *)object)->hca;
    hca_mr_t *mr;
    int status;
    if (region->bus_address != 0) {
        status = hca_mr_register_bus(pd, region->iova, region->bus_address, region->bytes, region->access & known, &mr);
    } else {
        status = hca_mr_register_at(pd, region->address, region->iova, region->bytes, region->access & known, &mr);
    }
    if (status == 0) {
        *mr_out = mr;
        *lkey_out = hca_mr_lkey(mr);
        *rkey_out = hca_mr_rkey(mr);
    }
    return status;
}

static int mr_deregister(void *mr)
{
    return hca_mr_deregister(mr);
}

static int ah_create(void *pd, const struct ibv_ah_attr *attr, void **ah_out)
{
    struct hca_route route = {
        .flow_label = attr->grh.flow_label, .traffic_class = attr->grh.traffic_class, .hop_limit = attr->grh.hop_limit};
    memcpy(route.dgid, attr->grh.dgid.raw, sizeof route.dgid);
    hca_ah_t *ah;
    int status =
        hca_ah_create(((struct ibsim_pd *)pd)->hca, attr->dlid, attr->sl, attr->is_global != 0 ? &route : NULL, &ah);
    if (status == 0) {
        *ah_out = ah;
    }
    return status;
}

static int ah_destroy(void *ah)
{
    return hca_ah_destroy(ah);
}

// --- the device ------------------------------------------------------------------------------------------------------

const struct ibverbs_device_ops ibsim_device_ops = {
    .query_device = query_device,
    .query_port = query_port,
    .query_gid = query_gid,
    .query_pkey = query_pkey,
    .open = open_context,
    .close = close_context,
    .abandon = abandon_context,
    .event_get = event_get,
    .event_waits = event_waits,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .xrcd_create = xrcd_create,
    .xrcd_destroy = xrcd_destroy,
    .mr_register = mr_register,
    .mr_deregister = mr_deregister,
    .cq_create = ibsim_cq_create,
    .cq_destroy = ibsim_cq_destroy,
    .cq_resize = ibsim_cq_resize,
    .cq_poll = ibsim_cq_poll,
    .cq_arm = ibsim_cq_arm,
    .cq_next_word = ibsim_cq_next_word,
    .cq_idle = ibsim_cq_idle,
    .cq_waiting = ibsim_cq_waiting,
    .qp_outstanding = ibsim_qp_outstanding,
    .qp_failure = ibsim_qp_failure,
    .cq_wait = ibsim_cq_wait,
    .srq_create = ibsim_srq_create,
    .srq_create_xrc = ibsim_srq_create_xrc,
    .srq_destroy = ibsim_srq_destroy,
    .srq_arm = ibsim_srq_arm,
    .srq_query = ibsim_srq_query,
    .qp_create = ibsim_qp_create,
    .qp_destroy = ibsim_qp_destroy,
    .qp_modify = ibsim_qp_modify,
    .qp_query = ibsim_qp_query,
    .group_change = ibsim_group_change,
    .ah_create = ah_create,
    .ah_destroy = ah_destroy,
    .post_send = ibsim_post_send,
    .post_recv = ibsim_post_recv,
    .post_srq_recv = ibsim_post_srq_recv,
    .send_room = ibsim_send_room,
};

int ibsim_device_add(struct backend_process *process)
{
    return process->backend.ops->hca_command == NULL
               ? -ENODEV
               : ibverbs_device_add(process, "ibsim0", &ibsim_device_ops, &process->backend);
}
