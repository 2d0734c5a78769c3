// Regions: the rights of a key, the address for boards, and accesses by the processor.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/tca-verbs/internal.h"
#include "verbs-shim/libtca/tca.h"

// The longest message takes a third of this time.
#define DEREGISTER_TIMEOUT_PS (1000000000ull * TCAV_NS)

// --- locations ------------------------------------------------------------------------------------------------------

static struct tcav_location host_location(const struct ibverbs_region *region)
{
    tcaHandle handle;
    uintptr_t before = (uintptr_t)region->address % 4; // pages begin at a multiple of 4
    tca_note_suppress(true);                           // memory of another kind is no mistake of the program
    int error = tcaCreateHandle(&handle, (char *)region->address - before, region->bytes + before, tcaMemoryCPU);
    tca_note_suppress(false);
    if (error != tcaSuccess) {
        return (struct tcav_location){.block = TCAV_NOWHERE};
    }
    return (struct tcav_location){.offset = handle.blockOffset + before, .block = TCAV_HOST};
}

static struct tcav_location gpu_location(const struct tcav_context *context, uint64_t bus_address)
{
    const struct backend *backend = &context->backend;
    for (unsigned gpu = 0; gpu < PEACH2_GPUS_MAX; gpu++) {
        uint64_t base = backend->ops->bar_bus_address(backend->ctx, (enum backend_bar)(BACKEND_BAR_GPU0 + gpu));
        uint64_t bytes = backend->ops->bar_bytes(backend->ctx, (enum backend_bar)(BACKEND_BAR_GPU0 + gpu));
        if (bus_address - base < bytes && bus_address - base < PEACH2_GPU_BYTES_MAX) {
            return (struct tcav_location){.offset = bus_address - base, .block = TCAV_GPU0 + gpu};
        }
    }
    return (struct tcav_location){.block = TCAV_NOWHERE};
}

uint64_t tcav_location_address(const struct tcav_context *context, uint32_t node, struct tcav_location location)
{
    const struct backend *backend = &context->backend;
    bool own = node == context->node;
    switch ((enum tcav_block)location.block) {
    case TCAV_NOWHERE:
        break;
    case TCAV_HOST:
        return own ? location.offset : peach2_window_address(context->board, node, location.offset);
    case TCAV_GPU0:
    case TCAV_GPU1: {
        unsigned gpu = location.block - TCAV_GPU0;
        return own ? backend->ops->bar_bus_address(backend->ctx, (enum backend_bar)(BACKEND_BAR_GPU0 + gpu)) +
                         location.offset
                   : peach2_gpu_window_address(context->board, node, gpu, location.offset);
    }
    }
    return 0;
}

struct tcav_location tcav_mr_location(const struct tcav_mr *mr, uint64_t address)
{
    struct tcav_location location = mr->location;
    location.offset += address - mr->region.iova;
    return location;
}

// --- life -----------------------------------------------------------------------------------------------------------

static int memory_check(const struct tcav_context *context, const struct ibverbs_region *region)
{
    const struct backend *backend = &context->backend;
    bool writable = (region->access & IBV_ACCESS_LOCAL_WRITE) != 0;
    return backend->ops->memory_check(backend->ctx, region->address, region->bytes, writable);
}

static int window_open(struct tcav_context *context, struct tcav_mr *mr)
{
    gdr_info_t info;
    void *va;
    if (context->gdr == NULL) {
        context->gdr = gdr_open();
    }
    if (context->gdr == NULL) {
        return -EFAULT;
    }
    int error = gdr_pin_buffer(context->gdr, (unsigned long)mr->region.address, mr->region.bytes, 0, 0, &mr->window);
    if (error != 0) {
        return error == ENOMEM ? -ENOMEM : -EFAULT;
    }
    mr->mapped = true; // pinned: must be undone
    if (gdr_get_info(context->gdr, mr->window, &info) != 0 ||
        gdr_map(context->gdr, mr->window, &va, info.mapped_size) != 0) {
        return -EFAULT;
    }
    mr->window_va = (uint64_t)(uintptr_t)va + ((uint64_t)(uintptr_t)mr->region.address - info.va);
    return 0;
}

int tcav_mr_register(void *pd, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                     uint32_t *rkey_out)
{
    struct tcav_pd *owner = pd;
    struct tcav_context *context = owner->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL) {
        return -ENOMEM;
    }
    // A key is used again only after 2^24 other registrations.
    *mr = (struct tcav_mr){.next = context->mrs, .pd = owner, .region = *region, .gpu = region->bus_address != 0};
    context->mrs = mr;
    owner->users++;
    int error = mr->gpu ? window_open(context, mr) : memory_check(context, region);
    if (error != 0) {
        (void)tcav_mr_deregister(mr);
        return error;
    }
    mr->location = mr->gpu ? gpu_location(context, region->bus_address) : host_location(region);
    context->mr_serial++;
    mr->key = context->mr_serial << 8 | (context->mr_serial * 37 & 0xff);
    *mr_out = mr;
    *lkey_out = *rkey_out = mr->key;
    return 0;
}

bool tcav_mr_is_copied(void *object)
{
    return ((const struct tcav_mr *)object)->location.block == TCAV_NOWHERE;
}

// The own board or a peer's board is reading or writing it.
static bool is_used(const struct tcav_mr *mr)
{
    const struct tcav_context *context = mr->pd->context;
    if (context->abandoned || mr->location.block == TCAV_NOWHERE) {
        return false;
    }
    uint64_t first = tcav_location_address(context, context->node, mr->location);
    for (const struct tcav_move *move = context->move; move != NULL; move = move->next) {
        if (move->source < first + mr->region.bytes && first < move->source + move->bytes) {
            return true;
        }
    }
    bool packets = mr->gpu && (int32_t)(mr->chains - context->chains_ended) > 0;
    return packets || tcav_grants_overlap(context, mr->location, mr->region.bytes);
}

// New uses of a closing key fail; uses that have begun are waited for.
static int use_end(struct tcav_mr *mr)
{
    struct tcav_context *context = mr->pd->context;
    mr->closing = true;
    mr->chains = context->chains;
    if (!is_used(mr)) {
        return 0;
    }
    uint64_t until_ps = tcav_now_ps(context) + DEREGISTER_TIMEOUT_PS;
    context->wants_end = true;
    while (is_used(mr) && tcav_now_ps(context) < until_ps) {
        if (tcav_progress(context) == 0) {
            tcav_progress_pause(context);
        }
    }
    context->wants_end = false;
    mr->closing = is_used(mr) ? false : true;
    return mr->closing ? 0 : -EBUSY;
}

int tcav_mr_deregister(void *object)
{
    struct tcav_mr *mr = object;
    struct tcav_context *context = mr->pd->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    int error = use_end(mr);
    if (error != 0) {
        return error;
    }
    struct tcav_mr **link = &context->mrs;
    while (*link != mr) {
        link = &(*link)->next;
    }
    *link = mr->next;
    mr->pd->users--;
    if (mr->mapped && !context->abandoned) {
        (void)gdr_unpin_buffer(context->gdr, mr->window);
    }
    free(mr);
    return 0;
}

// --- use ------------------------------------------------------------------------------------------------------------

static bool is_inside(const struct tcav_mr *mr, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - mr->region.iova;
    return offset <= mr->region.bytes && bytes <= mr->region.bytes - offset;
}

static struct tcav_mr *mr_of_key(const struct tcav_pd *pd, uint32_t key)
{
    struct tcav_mr *mr = pd->context->mrs;
    while (mr != NULL && (mr->key != key || mr->closing)) {
        mr = mr->next;
    }
    return key != 0 ? mr : NULL;
}

struct tcav_mr *tcav_mr_find(const struct tcav_pd *pd, uint32_t key, uint64_t address, uint64_t bytes, unsigned access)
{
    struct tcav_mr *mr = mr_of_key(pd, key);
    bool allowed = mr != NULL && mr->pd == pd && (mr->region.access & access) == access;
    return allowed && is_inside(mr, address, bytes) ? mr : NULL;
}

enum hca_fault tcav_mr_fault(const struct tcav_pd *pd, uint32_t key, uint64_t address, uint64_t bytes, unsigned access)
{
    const struct tcav_mr *mr = mr_of_key(pd, key);
    if (mr == NULL) {
        return HCA_FAULT_KEY;
    }
    if (mr->pd != pd) {
        return HCA_FAULT_DOMAIN;
    }
    if ((mr->region.access & access) != access) {
        return HCA_FAULT_RIGHTS;
    }
    return is_inside(mr, address, bytes) ? HCA_FAULT_NONE : HCA_FAULT_RANGE;
}

int tcav_mr_load(struct tcav_context *context, const struct tcav_mr *mr, uint64_t address, void *data, size_t bytes)
{
    uint64_t offset = address - mr->region.iova;
    if (mr->gpu) {
        void *from = (void *)(uintptr_t)(mr->window_va + offset);
        return gdr_copy_from_mapping(mr->window, data, from, bytes) == 0 ? 0 : -EFAULT;
    }
    memcpy(data, (char *)mr->region.address + offset, bytes);
    tcav_pay(context, BACKEND_COST_COPY, bytes);
    return 0;
}

int tcav_mr_store(struct tcav_context *context, const struct tcav_mr *mr, uint64_t address, const void *data,
                  size_t bytes)
{
    uint64_t offset = address - mr->region.iova;
    if (mr->gpu) {
        void *to = (void *)(uintptr_t)(mr->window_va + offset);
        return gdr_copy_to_mapping(mr->window, to, data, bytes) == 0 ? 0 : -EFAULT;
    }
    memcpy((char *)mr->region.address + offset, data, bytes);
    tcav_pay(context, BACKEND_COST_COPY, bytes);
    return 0;
}

// --- lists ----------------------------------------------------------------------------------------------------------

// Iterates over a list: a piece is the part of an element that a run of bytes covers.
struct piece {
    const struct ibv_sge *sge;
    uint64_t address, bytes;
};

static bool piece_next(const struct ibv_sge **sge, const struct ibv_sge *end, uint64_t *offset, uint64_t *bytes,
                       struct piece *piece_out)
{
    while (*sge != end && *bytes != 0) {
        const struct ibv_sge *element = (*sge)++;
        if (*offset >= element->length) {
            *offset -= element->length;
            continue;
        }
        uint64_t part = element->length - *offset < *bytes ? element->length - *offset : *bytes;
        *piece_out = (struct piece){element, element->addr + *offset, part};
        *bytes -= part;
        *offset = 0;
        return true;
    }
    return false;
}

uint64_t tcav_list_bytes(const struct ibv_sge *sge, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        bytes += sge[i].length;
    }
    return bytes;
}

int tcav_list_check(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, unsigned access)
{
    for (unsigned i = 0; i < count; i++) {
        if (sge[i].length != 0 && tcav_mr_find(pd, sge[i].lkey, sge[i].addr, sge[i].length, access) == NULL) {
            return -EFAULT;
        }
    }
    return 0;
}

enum hca_fault tcav_list_fault(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, unsigned access)
{
    enum hca_fault fault = HCA_FAULT_NONE;
    for (unsigned i = 0; i < count && fault == HCA_FAULT_NONE; i++) {
        fault = sge[i].length != 0 ? tcav_mr_fault(pd, sge[i].lkey, sge[i].addr, sge[i].length, access) : fault;
    }
    return fault;
}

int tcav_list_load(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, uint64_t offset, void *data,
                   size_t bytes)
{
    uint64_t left = bytes;
    unsigned char *to = data;
    const struct ibv_sge *end = sge + count;
    for (struct piece piece; piece_next(&sge, end, &offset, &left, &piece); to += piece.bytes) {
        const struct tcav_mr *mr = tcav_mr_find(pd, piece.sge->lkey, piece.address, piece.bytes, 0);
        if (mr == NULL || tcav_mr_load(pd->context, mr, piece.address, to, piece.bytes) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

int tcav_list_store(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, uint64_t offset,
                    const void *data, size_t bytes)
{
    uint64_t left = bytes;
    const unsigned char *from = data;
    const struct ibv_sge *end = sge + count;
    for (struct piece piece; piece_next(&sge, end, &offset, &left, &piece); from += piece.bytes) {
        const struct tcav_mr *mr =
            tcav_mr_find(pd, piece.sge->lkey, piece.address, piece.bytes, IBV_ACCESS_LOCAL_WRITE);
        if (mr == NULL || tcav_mr_store(pd->context, mr, piece.address, from, piece.bytes) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

struct tcav_location tcav_list_location(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count,
                                        uint64_t offset, uint64_t bytes)
{
    struct piece piece;
    uint64_t left = bytes;
    const struct tcav_mr *mr = NULL;
    if (piece_next(&sge, sge + count, &offset, &left, &piece) && piece.bytes == bytes) {
        mr = tcav_mr_find(pd, piece.sge->lkey, piece.address, bytes, 0);
    }
    return mr != NULL && mr->location.block != TCAV_NOWHERE ? tcav_mr_location(mr, piece.address)
                                                            : (struct tcav_location){.block = TCAV_NOWHERE};
}
