#include "verbs_double.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/kernel_call.h"

enum { QPS = 16, POSTED_MAX = 512, WCS = 64 };

struct posted {
    uint64_t id;
    uint8_t *to; // receives: of the last piece
    uint32_t bytes;
};

struct posted_list {
    struct posted list[POSTED_MAX];
    unsigned first, count;
};

static struct double_qp {
    struct ibv_qp base;
    struct posted_list sends, receives;
} * qps[QPS];

static struct ibv_wc completions[WCS];
static struct ibv_qp *completion_qps[WCS];
static unsigned completion_count;
static bool flushed;
static struct ibv_device device = {.name = "ibsim0"};
static struct ibv_context context = {.device = &device};

// --- completions -----------------------------------------------------------------------------------------------------

static bool posted_take(struct posted_list *list, struct posted *posted_out)
{
    if (list->count == 0) {
        return false;
    }
    *posted_out = list->list[list->first++ % POSTED_MAX];
    list->count--;
    return true;
}

static void completion_put(struct double_qp *qp, const struct ibv_wc *wc)
{
    if (completion_count < WCS) {
        completions[completion_count] = *wc;
        completion_qps[completion_count++] = &qp->base;
    }
}

void verbs_double_complete(struct fuzz_input *input)
{
    struct double_qp *qp = qps[fuzz_below(input, QPS)];
    bool send = fuzz_below(input, 2) == 0;
    struct posted posted;
    if (qp == NULL || completion_count == WCS || !posted_take(send ? &qp->sends : &qp->receives, &posted)) {
        return;
    }
    bool datagrams = qp->base.qp_type == IBV_QPT_UD;
    struct ibv_wc wc = {.wr_id = posted.id,
                        .status = fuzz_below(input, 8) == 0 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
                        .opcode = send        ? IBV_WC_RDMA_WRITE
                                  : datagrams ? IBV_WC_RECV
                                              : IBV_WC_RECV_RDMA_WITH_IMM,
                        .imm_data = send ? 0 : (uint32_t)fuzz_take(input, 4),
                        .wc_flags = datagrams ? 0 : IBV_WC_WITH_IMM,
                        .qp_num = qp->base.qp_num};
    if (!send && datagrams) {
        wc.byte_len = 40 + fuzz_below(input, 64) * posted.bytes / 63;
        fuzz_fill(input, posted.to, wc.byte_len - 40 < posted.bytes ? wc.byte_len - 40 : posted.bytes);
    }
    completion_put(qp, &wc);
}

static void flush(struct ibv_cq *cq)
{
    struct posted posted;
    for (unsigned i = 0; flushed && i < QPS; i++) {
        struct double_qp *qp = qps[i];
        while (qp != NULL && qp->base.send_cq == cq && completion_count < WCS && posted_take(&qp->sends, &posted)) {
            completion_put(qp, &(struct ibv_wc){.wr_id = posted.id, .status = IBV_WC_WR_FLUSH_ERR});
        }
    }
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int count = 0;
    unsigned kept = 0;
    flush(cq);
    for (unsigned i = 0; i < completion_count; i++) {
        if (completion_qps[i]->send_cq == cq && count < most) {
            wc[count++] = completions[i];
        } else {
            completions[kept] = completions[i];
            completion_qps[kept++] = completion_qps[i];
        }
    }
    completion_count = kept;
    return count;
}

void verbs_double_flush(void)
{
    flushed = true;
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

static int post(struct posted_list *list, struct posted posted)
{
    if (list->count == POSTED_MAX) {
        return ENOMEM;
    }
    list->list[(list->first + list->count++) % POSTED_MAX] = posted;
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    *bad = wr;
    return post(&((struct double_qp *)qp)->sends, (struct posted){.id = wr->wr_id});
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct posted posted = {.id = wr->wr_id};
    *bad = wr;
    if (wr->num_sge > 0) {
        posted.to = (uint8_t *)(uintptr_t)wr->sg_list[wr->num_sge - 1].addr;
        posted.bytes = wr->sg_list[wr->num_sge - 1].length;
    }
    return post(&((struct double_qp *)qp)->receives, posted);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq, (void)solicited_only;
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    for (unsigned i = 0; i < QPS; i++) {
        if (qps[i] == NULL) {
            qps[i] = calloc(1, sizeof *qps[i]);
            FUZZ_HOLDS(qps[i] != NULL, "no memory");
            qps[i]->base = (struct ibv_qp){.context = &context,
                                           .pd = pd,
                                           .send_cq = init->send_cq,
                                           .recv_cq = init->recv_cq,
                                           .qp_num = i + 1,
                                           .qp_type = init->qp_type};
            return &qps[i]->base;
        }
    }
    errno = ENOMEM;
    return NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < completion_count; i++) {
        if (completion_qps[i] != qp) {
            completions[kept] = completions[i];
            completion_qps[kept++] = completion_qps[i];
        }
    }
    completion_count = kept;
    qps[qp->qp_num - 1] = NULL;
    free(qp);
    return 0;
}

// As a device does, it refuses values that do not exist.
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    bool bad_mtu = (mask & IBV_QP_PATH_MTU) != 0 && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096);
    qp->state = (mask & IBV_QP_STATE) != 0 && !bad_mtu ? attr->qp_state : qp->state;
    return bad_mtu ? EINVAL : 0;
}

// --- the device ------------------------------------------------------------------------------------------------------

struct ibv_device **ibv_get_device_list(int *count)
{
    static struct ibv_device *list[] = {&device, NULL};
    if (count != NULL) {
        *count = 1;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    (void)list;
}

const char *ibv_get_device_name(struct ibv_device *which)
{
    return which->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
    (void)which;
    context.ops.poll_cq = poll_cq;
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    context.ops.req_notify_cq = req_notify_cq;
    return &context;
}

int ibv_close_device(struct ibv_context *which)
{
    (void)which;
    return 0;
}

int ibv_query_device(struct ibv_context *which, struct ibv_device_attr *attr)
{
    (void)which;
    *attr = (struct ibv_device_attr){.max_qp_wr = 256, .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16};
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *which, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr whole = {.state = IBV_PORT_ACTIVE, .lid = 1, .active_mtu = IBV_MTU_2048};
    (void)which, (void)port;
    memcpy(attr, &whole, offsetof(struct ibv_port_attr, port_cap_flags2));
    return 0;
}

int ibv_query_gid(struct ibv_context *which, uint8_t port, int index, union ibv_gid *gid)
{
    (void)which, (void)port, (void)index;
    memset(gid, 1, sizeof *gid);
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *which)
{
    static struct ibv_pd pd;
    pd.context = which;
    return &pd;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    (void)access;
    FUZZ_HOLDS(mr != NULL, "no memory");
    *mr = (struct ibv_mr){.context = &context, .pd = pd, .addr = address, .length = bytes, .lkey = 1, .rkey = 1};
    return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *which)
{
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    FUZZ_HOLDS(channel != NULL, "no memory");
    *channel = (struct ibv_comp_channel){.context = which, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *which, int entries, void *cq_context, struct ibv_comp_channel *channel,
                             int vector)
{
    struct ibv_cq *cq = calloc(1, sizeof *cq);
    (void)entries, (void)vector;
    FUZZ_HOLDS(cq != NULL, "no memory");
    *cq = (struct ibv_cq){.context = which, .cq_context = cq_context, .channel = channel};
    return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    free(cq);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    (void)channel, (void)cq, (void)cq_context;
    errno = EAGAIN;
    return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    (void)cq, (void)count;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *ah = calloc(1, sizeof *ah);
    (void)attr;
    FUZZ_HOLDS(ah != NULL, "no memory");
    *ah = (struct ibv_ah){.context = &context, .pd = pd};
    return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    (void)pd, (void)init;
    errno = ENOMEM;
    return NULL;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    (void)srq;
    return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return 0;
}

// --- the process -----------------------------------------------------------------------------------------------------

void verbs_double_begin(void)
{
    completion_count = 0;
    flushed = false;
    for (unsigned i = 0; i < QPS; i++) {
        FUZZ_HOLDS(qps[i] == NULL, "queue pair %u of the case before is left", i + 1);
    }
}

const struct attach_environment *attach_environment(void)
{
    static const struct attach_environment environment = {
        .node_count = DOUBLE_NODES, .address_base = DOUBLE_ADDRESS_BASE, .interrupt_ps = 1};
    return &environment;
}

enum attach_mode attach_mode(void)
{
    return ATTACH_TIMED;
}

void attach_spend_ps(uint64_t ps)
{
    (void)ps;
}

struct backend_process *backend_current(void)
{
    return NULL;
}

long tcasim_kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result = syscall(number, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
}
