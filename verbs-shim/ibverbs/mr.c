// Memory regions (IBA 10.6): memory of the program, and peer memory of GPUs, which is first pinned in their windows.
#include <stdio.h>
#include <stdlib.h>

#include "verbs-shim/ibverbs/note.h"

#define PAGE_MASK UINT64_C(4095)

enum {
    ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB,
    ACCESS_UNSUPPORTED = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND
};

// 10.6.3: remote write access requires local write access. Relaxed ordering and similar flags are hints that a device
// may ignore.
static int access_check(struct ibverbs_library *library, unsigned access)
{
    access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
    if ((access & ~(unsigned)(ACCESS_KNOWN | ACCESS_UNSUPPORTED)) != 0) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_ACCESS_FLAGS, access, 0);
    }
    if ((access & ACCESS_UNSUPPORTED) != 0) {
        return ibverbs_refuse(library, -EOPNOTSUPP, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    }
    bool written = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
    return written && (access & IBV_ACCESS_LOCAL_WRITE) == 0
               ? ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_ACCESS_LOCAL, 0, 0)
               : 0;
}

static int region_check(const struct ibverbs_context *context, const struct ibverbs_region *region)
{
    uint64_t address = (uintptr_t)region->address;
    if (region->bytes == 0 || region->bytes > context->device->info.attr.max_mr_size ||
        address + region->bytes < address || region->iova + region->bytes < region->iova ||
        (address & PAGE_MASK) != (region->iova & PAGE_MASK)) {
        return ibverbs_refuse(context->device->library, -EINVAL, JOURNAL_WHY_MEMORY_RANGE, address, region->bytes);
    }
    return access_check(context->device->library, region->access);
}

// An MPI whose registration is refused may continue with copies by the processor, which end with SIGSEGV.
static void no_window(const struct ibverbs_region *region)
{
    static bool said;
    if (!said) {
        said = true;
        fprintf(stderr, "tcasim: %zu B of device memory are not registered (ENOMEM): the GPU's BAR has no room\n",
                region->bytes);
    }
}

static const struct backend_peer_memory *peer_memory(const struct ibverbs_context *context)
{
    return context->device->library->process->peer_memory;
}

// Memory of another device must be inside one allocation, or the region is refused.
static int peer_pin(struct ibverbs_mr *mr, const struct ibverbs_context *context, struct ibverbs_region *region)
{
    const struct backend_peer_memory *peer = peer_memory(context);
    if (peer == NULL || !peer->owns(region->address)) {
        return 0;
    }
    int status = peer->pin(region->address, region->bytes, &mr->peer_pin, &region->bus_address);
    if (status == -ENOSPC) {
        no_window(region);
        status = -ENOMEM;
    }
    return status == -EINVAL ? -EFAULT : status;
}

static void mr_free(struct ibverbs_mr *mr, const struct ibverbs_context *context, bool unpin)
{
    if (mr->peer_pin != NULL && unpin) {
        peer_memory(context)->unpin(mr->peer_pin);
    }
    free(mr);
}

static int mr_make(struct ibverbs_mr *mr, struct ibverbs_pd *pd, struct ibverbs_region *region)
{
    struct ibverbs_context *context = pd->object.context;
    int status = region_check(context, region);
    status = status != 0 ? status : peer_pin(mr, context, region);
    if (status == 0) {
        status = context->device->ops->mr_register(pd->object.device, region, &mr->object.device, &mr->base.lkey,
                                                   &mr->base.rkey);
    }
    return status == -EFAULT ? ibverbs_refuse(context->device->library, status, JOURNAL_WHY_NO_SUCH_MEMORY,
                                              (uintptr_t)region->address, region->bytes)
                             : status;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    IBVERBS_ENTER_CONTEXT(ibv_pd->context);
    struct ibverbs_pd *pd = ibverbs_pd_of(ibv_pd);
    struct ibverbs_region region = {
        .address = addr, .bytes = length, .iova = iova, .access = access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE};
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_mr *mr = ibverbs_object_new(pd->object.context, sizeof *mr);
    int status = mr != NULL ? mr_make(mr, pd, &region) : -ENOMEM;
    if (status != 0) {
        pd->object.context->device->library->unborn = NULL;
        if (mr != NULL) {
            mr_free(mr, pd->object.context, true);
        }
        ibverbs_note_mr_refused(pd, began_ps, -status, &region);
        return ibverbs_fail(status);
    }
    mr->base.context = ibv_pd->context;
    mr->base.pd = ibv_pd;
    mr->base.addr = addr;
    mr->base.length = length;
    mr->base.handle = pd->object.context->handles++;
    pd->object.users++;
    mr->iova = iova;
    mr->access = region.access;
    ibverbs_object_add(&mr->object, pd->object.context, IBVERBS_MR, mr);
    if (entered->checks && mr->peer_pin == NULL) {
        entered->journal->memory(entered->process->backend.ctx, addr, length, true);
    }
    ibverbs_note_mr(mr, began_ps);
    return &mr->base;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

int ibverbs_mr_end(struct ibverbs_object *object)
{
    struct ibverbs_mr *mr = object->container;
    struct ibverbs_library *library = object->context->device->library;
    bool abandoned = library->abandoned; // CUDA's state has released its pins then
    int status = ibverbs_ops(object)->mr_deregister(object->device);
    if (status == 0) {
        if (library->checks && mr->peer_pin == NULL) {
            library->journal->memory(library->process->backend.ctx, mr->base.addr, mr->base.length, false);
        }
        ibverbs_pd_of(mr->base.pd)->object.users--;
        ibverbs_object_remove(object);
        mr_free(mr, object->context, !abandoned);
    }
    return status;
}

// Work requests that still name it end in protection and access errors (11.6.2). It is busy as long as a device may
// still write to it.
int ibv_dereg_mr(struct ibv_mr *ibv_mr)
{
    IBVERBS_ENTER_CONTEXT(ibv_mr->context);
    struct ibverbs_mr *mr = (struct ibverbs_mr *)ibv_mr;
    struct ibverbs_context *context = mr->object.context;
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct journal_record record = {.mr = {.address = (uintptr_t)mr->base.addr,
                                           .bytes = mr->base.length,
                                           .handle = mr->base.handle,
                                           .lkey = mr->base.lkey,
                                           .rkey = mr->base.rkey}};
    int error = -ibverbs_mr_end(&mr->object);
    ibverbs_note_end(context, began_ps, JOURNAL_DEREG_MR, error, &record);
    return ibverbs_status(error);
}
