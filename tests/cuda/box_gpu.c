// The GPUs of the box.
#include <errno.h>
#include <string.h>

#include "box.h"

// --- work -----------------------------------------------------------------------------------------------------------

static uint8_t *host_at(struct box *box, uint64_t bus_address)
{
    return (uint8_t *)box->pinned[bus_address / 0x100000000ull - 1].address + bus_address % 0x100000000ull;
}

static void perform(struct box *box, unsigned gpu, const struct backend_gpu_work *work)
{
    uint8_t *device = box->gpu[gpu].memory + work->device_address;
    for (uint64_t row = 0; row < work->rows; row++) {
        uint64_t near = row * work->device_pitch, far = row * work->other_pitch;
        switch (work->kind) {
        case BACKEND_GPU_TO_DEVICE:
            memcpy(device + near, host_at(box, work->other_address) + far, work->bytes);
            break;
        case BACKEND_GPU_TO_HOST:
            memcpy(host_at(box, work->other_address) + far, device + near, work->bytes);
            break;
        case BACKEND_GPU_INSIDE:
            memmove(device + near, box->gpu[gpu].memory + work->other_address + far, work->bytes);
            break;
        case BACKEND_GPU_TO_PEER:
            memcpy(box->gpu[work->peer].memory + work->other_address + far, device + near, work->bytes);
            break;
        case BACKEND_GPU_SET:
            memset(device + near, work->value, work->bytes);
            break;
        case BACKEND_GPU_KERNEL:
        case BACKEND_GPU_MARK:
        case BACKEND_GPU_AFTER:
            break;
        }
    }
}

static uint64_t duration_ps(const struct backend_gpu_work *work)
{
    switch (work->kind) {
    case BACKEND_GPU_MARK:
    case BACKEND_GPU_AFTER:
        return 10000;
    case BACKEND_GPU_KERNEL:
        return work->duration_ns * 1000 + work->memory_bytes + work->flops;
    default:
        return 1000000 + work->bytes * work->rows * 100;
    }
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// When the head of the queue ends; UINT64_MAX: it has none, or waits for something that has not ended.
static uint64_t head_end(const struct box *box, const struct box_queue *queue, uint64_t *start_out)
{
    if (queue->done == queue->count) {
        return UINT64_MAX;
    }
    const struct box_work *head = &queue->works[queue->done];
    uint64_t start = later(head->submitted_ps, queue->done != 0 ? queue->works[queue->done - 1].ended_ps : 0);
    if (head->work.kind == BACKEND_GPU_AFTER) {
        const struct box_queue *other = &box->queues[head->work.queue];
        EXPECT_EQ(other->gpu, head->work.peer);
        if (other->done < head->work.ticket) {
            return UINT64_MAX;
        }
        start = later(start, other->works[head->work.ticket - 1].ended_ps);
    }
    *start_out = start;
    return start + duration_ps(&head->work);
}

// Ends the work that ends first, if it does so until limit.
static bool step(struct box *box, uint64_t limit_ps)
{
    struct box_queue *first = NULL;
    uint64_t first_end = UINT64_MAX, first_start = 0, start = 0;
    for (unsigned i = 0; i < BOX_QUEUES; i++) {
        uint64_t end = head_end(box, &box->queues[i], &start);
        if (end < first_end) {
            first = &box->queues[i];
            first_end = end;
            first_start = start;
        }
    }
    if (first == NULL || first_end > limit_ps) {
        return false;
    }
    struct box_work *head = &first->works[first->done++];
    head->started_ps = first_start;
    head->ended_ps = first_end;
    head->ended = true;
    if (!head->failed) {
        perform(box, first->gpu, &head->work);
    }
    box->now_ps = later(box->now_ps, first_end);
    return true;
}

void box_run_until(struct box *box, uint64_t ps)
{
    while (step(box, ps)) {
    }
    box->now_ps = ps;
}

// --- queues ---------------------------------------------------------------------------------------------------------

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    struct box *box = ctx;
    for (uint32_t i = 0; i < BOX_QUEUES; i++) {
        if (!box->queues[i].exists) {
            memset(&box->queues[i], 0, sizeof box->queues[i]);
            box->queues[i].exists = true;
            box->queues[i].gpu = gpu;
            *queue_out = i;
            return 0;
        }
    }
    return -ENOMEM;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket);

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    struct box *box = ctx;
    (void)wait(ctx, gpu, queue, box->queues[queue].count);
    box->queues[queue].exists = false;
    return 0;
}

static int submit(void *ctx, unsigned gpu, uint32_t id, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    struct box *box = ctx;
    struct box_queue *queue = &box->queues[id];
    if (!queue->exists || queue->gpu != gpu || queue->count == BOX_WORKS) {
        FAIL("a submission to queue %u of GPU %u", id, gpu);
        return -EINVAL;
    }
    struct box_work *added = &queue->works[queue->count++];
    *added =
        (struct box_work){.work = *work, .ticket = queue->count, .submitted_ps = box->now_ps, .failed = box->fail_next};
    box->fail_next = false;
    *ticket_out = added->ticket;
    return 0;
}

static int poll(void *ctx, unsigned gpu, uint32_t id, uint64_t ticket, uint64_t *ended_ps_out)
{
    struct box *box = ctx;
    const struct box_queue *queue = &box->queues[id];
    EXPECT_EQ(queue->gpu, gpu);
    if (ticket == 0) {
        return 1;
    }
    const struct box_work *work = &queue->works[ticket - 1];
    if (ended_ps_out != NULL) {
        *ended_ps_out = work->ended_ps;
    }
    return work->ended && work->failed ? -EIO : work->ended;
}

static int wait(void *ctx, unsigned gpu, uint32_t id, uint64_t ticket)
{
    struct box *box = ctx;
    int ended = poll(ctx, gpu, id, ticket, NULL);
    while (ended == 0) {
        if (!step(box, UINT64_MAX)) {
            FAIL("nothing goes on, and queue %u waits", id);
            return -EIO;
        }
        ended = poll(ctx, gpu, id, ticket, NULL);
    }
    return ended < 0 ? ended : 0;
}

// --- memory ---------------------------------------------------------------------------------------------------------

static unsigned count(void *ctx)
{
    return ((struct box *)ctx)->gpus;
}

static uint64_t used(const struct box_gpu *gpu)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < BOX_ALLOCATIONS; i++) {
        bytes += gpu->allocations[i].bytes;
    }
    return bytes;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    const struct box *box = ctx;
    *info_out = (struct backend_gpu_info){
        .name = "Box",
        .memory_bytes = BOX_GPU_BYTES,
        .memory_free_bytes = BOX_GPU_BYTES - used(&box->gpu[gpu]),
        .bar_bytes = 65536ull * BOX_BAR_PAGES,
        .pci_bus = 2 + gpu,
        .socket = gpu / 2,
        .copy_engines = 2,
        .copy_call_ns = 6000,
        .submit_call_ns = 2000,
        .manage_call_ns = 10000,
        .staging_bytes = box->no_staging ? 0 : BOX_STAGING,
    };
    return 0;
}

static bool overlaps(const struct box_range *a, uint64_t start, uint64_t bytes)
{
    return a->bytes != 0 && a->start < start + bytes && start < a->start + a->bytes;
}

static bool is_free(const struct box_gpu *gpu, uint64_t start, uint64_t bytes)
{
    for (unsigned i = 0; i < BOX_ALLOCATIONS; i++) {
        if (overlaps(&gpu->allocations[i], start, bytes)) {
            return false;
        }
    }
    return start + bytes <= BOX_GPU_BYTES;
}

static int alloc(void *ctx, unsigned gpu_index, uint64_t bytes, uint64_t *device_address_out)
{
    struct box_gpu *gpu = &((struct box *)ctx)->gpu[gpu_index];
    for (uint64_t start = 0; bytes <= BOX_GPU_BYTES && start < BOX_GPU_BYTES; start += 256) {
        for (unsigned i = 0; is_free(gpu, start, bytes) && i < BOX_ALLOCATIONS; i++) {
            if (gpu->allocations[i].bytes == 0) {
                gpu->allocations[i] = (struct box_range){start, bytes, 0};
                *device_address_out = start;
                return 0;
            }
        }
    }
    return -ENOMEM;
}

static int free_memory(void *ctx, unsigned gpu_index, uint64_t device_address)
{
    struct box_gpu *gpu = &((struct box *)ctx)->gpu[gpu_index];
    for (unsigned i = 0; i < BOX_ALLOCATIONS; i++) {
        struct box_range *range = &gpu->allocations[i];
        if (range->bytes != 0 && range->start == device_address) {
            for (unsigned p = 0; p < BOX_PINS; p++) {
                if (overlaps(&gpu->pins[p], range->start, range->bytes)) {
                    return -EBUSY;
                }
            }
            range->bytes = 0;
            return 0;
        }
    }
    return -EINVAL;
}

static bool pages_free(const struct box_gpu *gpu, uint64_t first, uint64_t pages)
{
    for (uint64_t page = first; page < first + pages; page++) {
        if (page >= BOX_BAR_PAGES || gpu->pages[page] != BOX_PAGE_FREE) {
            return false;
        }
    }
    return true;
}

static void pages_set(struct box_gpu *gpu, uint64_t first, uint64_t pages, uint64_t device_address)
{
    for (uint64_t i = 0; i < pages; i++) {
        gpu->pages[first + i] = device_address == BOX_PAGE_FREE ? BOX_PAGE_FREE : device_address + i * 65536;
    }
}

static uint64_t pages_of(uint64_t device_address, uint64_t bytes)
{
    return (device_address % 65536 + bytes + 65535) / 65536;
}

static int pin(void *ctx, unsigned gpu_index, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    struct box_gpu *gpu = &((struct box *)ctx)->gpu[gpu_index];
    uint64_t first = 0, pages = pages_of(device_address, bytes);
    unsigned slot = 0;
    while (first < BOX_BAR_PAGES && !pages_free(gpu, first, pages)) {
        first++;
    }
    while (slot < BOX_PINS && gpu->pins[slot].bytes != 0) {
        slot++;
    }
    if (first == BOX_BAR_PAGES || slot == BOX_PINS) {
        return -ENOSPC;
    }
    pages_set(gpu, first, pages, device_address / 65536 * 65536);
    *offset_out = first * 65536 + device_address % 65536;
    *bus_address_out = BOX_BAR_BASE + ((uint64_t)gpu_index << 32) + *offset_out;
    gpu->pins[slot] = (struct box_range){device_address, bytes, *offset_out};
    return 0;
}

static int unpin(void *ctx, unsigned gpu_index, uint64_t offset)
{
    struct box_gpu *gpu = &((struct box *)ctx)->gpu[gpu_index];
    for (unsigned i = 0; i < BOX_PINS; i++) {
        struct box_range *range = &gpu->pins[i];
        if (range->bytes != 0 && range->offset == offset) {
            pages_set(gpu, offset / 65536, pages_of(range->start, range->bytes), BOX_PAGE_FREE);
            range->bytes = 0;
            return 0;
        }
    }
    FAIL("unpin of what is not pinned");
    return -EINVAL;
}

const struct backend_gpu_ops box_gpu_ops = {
    .count = count,
    .info = info,
    .alloc = alloc,
    .free = free_memory,
    .pin = pin,
    .unpin = unpin,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .submit = submit,
    .poll = poll,
    .wait = wait,
};

// --- for tests ------------------------------------------------------------------------------------------------------

const struct box_work *box_work(const struct box *box, enum backend_gpu_work_kind kind, unsigned index)
{
    for (unsigned i = 0; i < BOX_QUEUES; i++) {
        for (unsigned j = 0; j < box->queues[i].count; j++) {
            if (box->queues[i].works[j].work.kind == kind && index-- == 0) {
                return &box->queues[i].works[j];
            }
        }
    }
    return NULL;
}

unsigned box_work_count(const struct box *box, enum backend_gpu_work_kind kind)
{
    unsigned works = 0;
    while (box_work(box, kind, works) != NULL) {
        works++;
    }
    return works;
}

uint8_t *box_device(struct box *box, const void *pointer)
{
    uint64_t place = (uint64_t)(uintptr_t)pointer - 0x2300000000ull;
    return box->gpu[place >> 36].memory + (place & 0xfffffffffull);
}
