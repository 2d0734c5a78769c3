// What the kernel's driver of the HCA offers to a process of the simulation: the firmware's commands, with the
// process's memory pinned for them.
#include <errno.h>
#include <unistd.h>
#include <stdlib.h>

#include "sim/platform/backend_inproc.h"

enum { PAGE_BYTES = 4096 };

static int to_errno(enum sim_status status)
{
    switch (status) {
    case SIM_OK:
        return 0;
    case SIM_ERR_NO_MEMORY:
        return -ENOMEM;
    case SIM_ERR_BUSY:
        return -EBUSY;
    case SIM_ERR_INVALID:
    case SIM_ERR_NOT_FOUND:
    case SIM_ERR_EXISTS:
    case SIM_ERR_IO:
    case SIM_ERR_RANGE:
    case SIM_ERR_FAULT:
    case SIM_ERR_TIMEOUT:
    case SIM_ERR_UNSUPPORTED:
        break;
    }
    return -EINVAL;
}

static hca_t *hca_of(void *ctx)
{
    return ((struct plat_backend_inproc *)ctx)->hca;
}

struct settling {
    struct hca_fence fence;
    sim_t *sim;
    sim_condition_t condition;
    bool done;
};

static void settled(void *ctx)
{
    struct settling *settling = ctx;
    settling->done = true;
    sim_condition_signal(settling->sim, &settling->condition);
}

// A command that ends something returns when nothing is under way to memory any more that it needed. Outside threads
// the process has ended, and its memory is nobody's.
static int settle(void *ctx, enum sim_status status)
{
    const struct plat_backend_inproc *backend = ctx;
    const struct sim_wait_reason reason = {"hca", "the adapter to settle", 0, 0};
    struct settling settling = {.fence = {.done = settled, .ctx = &settling}, .sim = backend->sim};
    if (status != SIM_OK || !sim_thread_is_running(backend->sim)) {
        return to_errno(status);
    }
    sim_condition_init(&settling.condition);
    bool waits = hca_fw_fence(backend->hca, &settling.fence);
    while (waits && !settling.done) {
        (void)sim_condition_wait(backend->sim, &settling.condition, SIM_NEVER_PS, &reason);
    }
    return 0;
}

static bool is_gone(void *ctx)
{
    return hca_is_gone(hca_of(ctx));
}

// --- an HCA that goes away -------------------------------------------------------------------------------------------
// As mlx4_core after a fatal error: it tells every process, nothing new can be made, and what is destroyed just goes.

static bool event_there(host_memory_t *memory, const struct hca_eq_init *init, uint32_t count)
{
    const struct hca_eqe *ring = host_memory_at(memory, init->base);
    return ring[count & (init->entries - 1)].owner == ((count & init->entries) == 0);
}

// Behind what has arrived and was not taken; others may have been lost on the way.
static void event_put(host_memory_t *memory, const struct hca_eq_init *init)
{
    uint32_t count = (uint32_t) * (const uint64_t *)host_memory_at(memory, init->record), left = init->entries - 1;
    while (left > 0 && event_there(memory, init, count)) {
        count++;
        left--;
    }
    const struct hca_eqe eqe = {.type = HCA_EVENT_DEVICE_FATAL, .owner = (count & init->entries) == 0};
    uint64_t place = init->base + (count & (init->entries - 1)) * sizeof eqe;
    (void)host_memory_pcie_ops.write(memory, place, &eqe, sizeof eqe);
}

static void hca_gone(void *ctx, hca_t *hca)
{
    struct hca_eq_init init;
    for (uint32_t eqn = 1; eqn <= HCA_UAR_PAGES; eqn++) { // one for each process
        if (hca_fw_eq_query(hca, eqn, &init) == SIM_OK) {
            event_put(ctx, &init);
        }
    }
}

void plat_hca_watch(hca_t *hca, host_memory_t *memory)
{
    hca_set_gone(hca, hca_gone, memory);
}

// --- commands --------------------------------------------------------------------------------------------------------

static int uar_alloc(void *ctx, uint32_t *uar_out)
{
    uint64_t *used = ((struct plat_backend_inproc *)ctx)->hca_uars;
    if (*used == UINT64_MAX) {
        return -ENOMEM;
    }
    *uar_out = (uint32_t)__builtin_ctzll(~*used);
    *used |= UINT64_C(1) << *uar_out;
    return 0;
}

static void uar_free(void *ctx, uint32_t uar)
{
    *((struct plat_backend_inproc *)ctx)->hca_uars &= ~(UINT64_C(1) << uar);
}

static int query_device(void *ctx, struct hca_device_info *info_out)
{
    hca_fw_query_device(hca_of(ctx), info_out);
    return 0;
}

static int query_port(void *ctx, struct hca_port_info *info_out)
{
    hca_fw_query_port(hca_of(ctx), info_out);
    return 0;
}

static int pd_create(void *ctx, uint32_t *pdn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_pd_create(hca_of(ctx), pdn_out));
}

static int pd_destroy(void *ctx, uint32_t pdn)
{
    return to_errno(hca_fw_pd_destroy(hca_of(ctx), pdn));
}

static int xrcd_create(void *ctx, uint32_t *xrcdn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_xrcd_create(hca_of(ctx), xrcdn_out));
}

static int xrcd_destroy(void *ctx, uint32_t xrcdn)
{
    return to_errno(hca_fw_xrcd_destroy(hca_of(ctx), xrcdn));
}

static int region_create(struct plat_backend_inproc *backend, struct hca_mr_init *init, uint64_t *pages,
                         uint32_t *key_out)
{
    init->page_bytes = PAGE_BYTES;
    init->pages = pages;
    return to_errno(hca_fw_mr_create(backend->hca, init, key_out));
}

// Pinned buffers, and what a caller has pinned elsewhere, lie in one piece on the bus.
static int mr_register_bus(struct plat_backend_inproc *backend, struct hca_mr_init *init, uint64_t bus,
                           uint32_t *key_out)
{
    if (bus % PAGE_BYTES != init->iova % PAGE_BYTES) {
        return -EINVAL; // pages are translated whole
    }
    uint64_t count = host_memory_page_count(init->iova, init->bytes);
    uint64_t *pages = malloc(count * sizeof *pages);
    if (pages == NULL) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        pages[i] = bus - bus % PAGE_BYTES + i * PAGE_BYTES;
    }
    int status = region_create(backend, init, pages, key_out);
    free(pages);
    return status;
}

// Any other memory of the program is pinned page by page until the region goes.
static int mr_register_own(struct plat_backend_inproc *backend, struct hca_mr_init *init, uint32_t *key_out)
{
    if (!plat_process_memory_exists(getpid(), init->iova, init->bytes, (init->access & HCA_LOCAL_WRITE) != 0)) {
        return -EFAULT;
    }
    uint64_t count = host_memory_page_count(init->iova, init->bytes);
    struct plat_pinned_region *region = malloc(sizeof *region + count * sizeof *region->pages);
    if (region == NULL) {
        return -ENOMEM;
    }
    int status = to_errno(host_memory_pin(backend->memory, &backend->owner, init->iova, init->bytes, region->pages));
    if (status != 0) {
        free(region);
        return status;
    }
    status = region_create(backend, init, region->pages, key_out);
    if (status != 0) {
        host_memory_unpin(backend->memory, region->pages, count);
        free(region);
        return status;
    }
    region->key = *key_out;
    region->count = count;
    region->next = backend->pinned;
    backend->pinned = region;
    return 0;
}

static int mr_register(void *ctx, uint32_t pdn, uint64_t iova, uint64_t bytes, uint32_t access, uint64_t bus_address,
                       uint32_t *key_out)
{
    struct plat_backend_inproc *backend = ctx;
    struct hca_mr_init init = {.pdn = pdn, .access = access, .iova = iova, .bytes = bytes};
    uint64_t first, last;
    if (bytes == 0 || iova + bytes < iova) {
        return -EINVAL;
    }
    if (is_gone(ctx)) {
        return -EIO;
    }
    if (bus_address != 0) {
        return mr_register_bus(backend, &init, bus_address, key_out);
    }
    bool pinned = host_memory_bus_address(backend->memory, (const void *)(uintptr_t)iova, &first) &&
                  host_memory_bus_address(backend->memory, (const void *)(uintptr_t)(iova + bytes - 1), &last);
    return pinned ? mr_register_bus(backend, &init, first, key_out) : mr_register_own(backend, &init, key_out);
}

static int mr_deregister(void *ctx, uint32_t key)
{
    struct plat_backend_inproc *backend = ctx;
    int status = settle(ctx, hca_fw_mr_destroy(backend->hca, key)); // nothing of it is under way after that
    struct plat_pinned_region **link = &backend->pinned;
    while (*link != NULL && (*link)->key != key) {
        link = &(*link)->next;
    }
    struct plat_pinned_region *region = *link;
    if (status == 0 && region != NULL) {
        *link = region->next;
        host_memory_unpin(backend->memory, region->pages, region->count);
        free(region);
    }
    return status;
}

static int eq_create(void *ctx, const struct hca_eq_init *init, uint32_t *eqn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_eq_create(hca_of(ctx), init, eqn_out));
}

static int eq_destroy(void *ctx, uint32_t eqn)
{
    return settle(ctx, hca_fw_eq_destroy(hca_of(ctx), eqn));
}

static int cq_create(void *ctx, const struct hca_cq_init *init, uint32_t *cqn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_cq_create(hca_of(ctx), init, cqn_out));
}

static int cq_resize(void *ctx, uint32_t cqn, const struct hca_cq_resize *resize)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_cq_resize(hca_of(ctx), cqn, resize));
}

static int cq_destroy(void *ctx, uint32_t cqn)
{
    return settle(ctx, hca_fw_cq_destroy(hca_of(ctx), cqn));
}

static int srq_create(void *ctx, const struct hca_srq_init *init, uint32_t *srqn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_srq_create(hca_of(ctx), init, srqn_out));
}

static int srq_arm(void *ctx, uint32_t srqn, uint32_t limit)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_srq_arm(hca_of(ctx), srqn, limit));
}

static int srq_query(void *ctx, uint32_t srqn, uint32_t *limit_out)
{
    return to_errno(hca_fw_srq_query(hca_of(ctx), srqn, limit_out));
}

static int srq_destroy(void *ctx, uint32_t srqn)
{
    return settle(ctx, hca_fw_srq_destroy(hca_of(ctx), srqn));
}

static int qp_create(void *ctx, const struct hca_qp_init *init, uint32_t *qpn_out)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_qp_create(hca_of(ctx), init, qpn_out));
}

static int qp_modify(void *ctx, uint32_t qpn, uint32_t mask, const struct hca_qp_attr *attr)
{
    if (is_gone(ctx)) {
        return -EIO;
    }
    enum sim_status status = hca_fw_qp_modify(hca_of(ctx), qpn, mask, attr);
    bool ends = (mask & HCA_QP_STATE) != 0 && attr->state == HCA_RESET;
    return ends ? settle(ctx, status) : to_errno(status);
}

static int qp_query(void *ctx, uint32_t qpn, struct hca_qp_attr *attr_out)
{
    return to_errno(hca_fw_qp_query(hca_of(ctx), qpn, attr_out));
}

static int group_attach(void *ctx, uint32_t qpn, const uint8_t mgid[16], uint16_t mlid)
{
    return is_gone(ctx) ? -EIO : to_errno(hca_fw_group_attach(hca_of(ctx), qpn, mgid, mlid));
}

static int group_detach(void *ctx, uint32_t qpn, const uint8_t mgid[16], uint16_t mlid)
{
    return to_errno(hca_fw_group_detach(hca_of(ctx), qpn, mgid, mlid));
}

static int qp_destroy(void *ctx, uint32_t qpn)
{
    return settle(ctx, hca_fw_qp_destroy(hca_of(ctx), qpn));
}

const struct backend_hca_ops plat_backend_hca_ops = {
    .uar_alloc = uar_alloc,
    .uar_free = uar_free,
    .query_device = query_device,
    .query_port = query_port,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .xrcd_create = xrcd_create,
    .xrcd_destroy = xrcd_destroy,
    .mr_register = mr_register,
    .mr_deregister = mr_deregister,
    .eq_create = eq_create,
    .eq_destroy = eq_destroy,
    .cq_create = cq_create,
    .cq_resize = cq_resize,
    .cq_destroy = cq_destroy,
    .srq_create = srq_create,
    .srq_arm = srq_arm,
    .srq_query = srq_query,
    .srq_destroy = srq_destroy,
    .qp_create = qp_create,
    .qp_modify = qp_modify,
    .qp_query = qp_query,
    .qp_destroy = qp_destroy,
    .group_attach = group_attach,
    .group_detach = group_detach,
};
