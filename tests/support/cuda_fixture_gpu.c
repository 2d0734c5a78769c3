// The GPUs of cuda_fixture.
#include <errno.h>
#include <string.h>

#include "cuda_fixture.h"

// --- work -----------------------------------------------------------------------------------------------------------

static uint8_t *host_at(struct cuda_fixture *fixture, uint64_t bus_address)
{
    return (uint8_t *)fixture->pinned[bus_address / 0x100000000ull - 1].address + bus_address % 0x100000000ull;
}

static void perform(struct cuda_fixture *fixture, unsigned gpu, const struct backend_gpu_work *work)
{
    uint8_t *device = fixture->gpu[gpu].memory + work->device_address;
    for (uint64_t row = 0; row < work->rows; row++) {
        uint64_t near = row * work->device_pitch, far = row * work->other_pitch;
        switch (work->kind) {
        case BACKEND_GPU_TO_DEVICE:
            memcpy(device + near, host_at(fixture, work->other_address) + far, work->bytes);
            break;
        case BACKEND_GPU_TO_HOST:
            memcpy(host_at(fixture, work->other_address) + far, device + near, work->bytes);
            break;
        case BACKEND_GPU_INSIDE:
            memmove(device + near, fixture->gpu[gpu].memory + work->other_address + far, work->bytes);
            break;
        case BACKEND_GPU_TO_PEER:
            memcpy(fixture->gpu[work->peer].memory + work->other_address + far, device + near, work->bytes);
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

// When the head of the queue ends; UINT64_MAX: the queue is empty, or its head waits for work that has not ended.
static uint64_t head_end(const struct cuda_fixture *fixture, const struct cuda_fixture_queue *queue,
                         uint64_t *start_out)
{
    if (queue->done == queue->count) {
        return UINT64_MAX;
    }
    const struct cuda_fixture_work *head = &queue->works[queue->done];
    uint64_t start = later(head->submitted_ps, queue->done != 0 ? queue->works[queue->done - 1].ended_ps : 0);
    if (head->work.kind == BACKEND_GPU_AFTER) {
        const struct cuda_fixture_queue *other = &fixture->queues[head->work.queue];
        EXPECT_EQ(other->gpu, head->work.peer);
        if (other->done < head->work.ticket) {
            return UINT64_MAX;
        }
        start = later(start, other->works[head->work.ticket - 1].ended_ps);
    }
    *start_out = start;
    return start + duration_ps(&head->work);
}

// Ends the work that ends first, if this is before limit.
static bool step(struct cuda_fixture *fixture, uint64_t limit_ps)
{
    struct cuda_fixture_queue *first = NULL;
    uint64_t first_end = UINT64_MAX, first_start = 0, start = 0;
    for (unsigned i = 0; i < CUDA_FIXTURE_QUEUES; i++) {
        uint64_t end = head_end(fixture, &fixture->queues[i], &start);
        if (end < first_end) {
            first = &fixture->queues[i];
            first_end = end;
            first_start = start;
        }
    }
    if (first == NULL || first_end > limit_ps) {
        return false;
    }
    struct cuda_fixture_work *head = &first->works[first->done++];
    head->started_ps = first_start;
    head->ended_ps = first_end;
    head->ended = true;
    if (!head->failed) {
        perform(fixture, first->gpu, &head->work);
    }
    fixture->now_ps = later(fixture->now_ps, first_end);
    return true;
}

void cuda_fixture_run_until(struct cuda_fixture *fixture, uint64_t ps)
{
    while (step(fixture, ps)) {
    }
    fixture->now_ps = ps;
}

// --- queues ---------------------------------------------------------------------------------------------------------

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    struct cuda_fixture *fixture = ctx;
    for (uint32_t i = 0; i < CUDA_FIXTURE_QUEUES; i++) {
        if (!fixture->queues[i].exists) {
            memset(&fixture->queues[i], 0, sizeof fixture->queues[i]);
            fixture->queues[i].exists = true;
            fixture->queues[i].gpu = gpu;
            *queue_out = i;
            return 0;
        }
    }
    return -ENOMEM;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket);

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    struct cuda_fixture *fixture = ctx;
    (void)wait(ctx, gpu, queue, fixture->queues[queue].count);
    fixture->queues[queue].exists = false;
    return 0;
}

static int submit(void *ctx, unsigned gpu, uint32_t id, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    struct cuda_fixture *fixture = ctx;
    struct cuda_fixture_queue *queue = &fixture->queues[id];
    if (!queue->exists || queue->gpu != gpu || queue->count == CUDA_FIXTURE_WORKS) {
        FAIL("a submission to queue %u of GPU %u", id, gpu);
        return -EINVAL;
    }
    struct cuda_fixture_work *added = &queue->works[queue->count++];
    *added = (struct cuda_fixture_work){
        .work = *work, .ticket = queue->count, .submitted_ps = fixture->now_ps, .failed = fixture->fail_next};
    fixture->fail_next = false;
    *ticket_out = added->ticket;
    return 0;
}

static int poll(void *ctx, unsigned gpu, uint32_t id, uint64_t ticket, uint64_t *ended_ps_out)
{
    struct cuda_fixture *fixture = ctx;
    const struct cuda_fixture_queue *queue = &fixture->queues[id];
    EXPECT_EQ(queue->gpu, gpu);
    if (ticket == 0) {
        return 1;
    }
    const struct cuda_fixture_work *work = &queue->works[ticket - 1];
    if (ended_ps_out != NULL) {
        *ended_ps_out = work->ended_ps;
    }
    return work->ended && work->failed ? -EIO : work->ended;
}

static int wait(void *ctx, unsigned gpu, uint32_t id, uint64_t ticket)
{
    struct cuda_fixture *fixture = ctx;
    int ended = poll(ctx, gpu, id, ticket, NULL);
    while (ended == 0) {
        if (!step(fixture, UINT64_MAX)) {
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
    return ((struct cuda_fixture *)ctx)->gpus;
}

static uint64_t used(const struct cuda_fixture_gpu *gpu)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < CUDA_FIXTURE_ALLOCATIONS; i++) {
        bytes += gpu->allocations[i].bytes;
    }
    return bytes;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    const struct cuda_fixture *fixture = ctx;
    *info_out = (struct backend_gpu_info){
        .name = "Fixture",
        .memory_bytes = CUDA_FIXTURE_GPU_BYTES,
        .memory_free_bytes = CUDA_FIXTURE_GPU_BYTES - used(&fixture->gpu[gpu]),
        .bar_bytes = 65536ull * CUDA_FIXTURE_BAR_PAGES,
        .pci_bus = 2 + gpu,
        .socket = gpu / 2,
        .copy_engines = 2,
        .copy_call_ns = 6000,
        .submit_call_ns = 2000,
        .manage_call_ns = 10000,
        .staging_bytes = fixture->no_staging ? 0 : CUDA_FIXTURE_STAGING,
    };
    return 0;
}

static bool overlaps(const struct cuda_fixture_range *a, uint64_t start, uint64_t bytes)
{
    return a->bytes != 0 && a->start < start + bytes && start < a->start + a->bytes;
}

static bool is_free(const struct cuda_fixture_gpu *gpu, uint64_t start, uint64_t bytes)
{
    for (unsigned i = 0; i < CUDA_FIXTURE_ALLOCATIONS; i++) {
        if (overlaps(&gpu->allocations[i], start, bytes)) {
            return false;
        }
    }
    return start + bytes <= CUDA_FIXTURE_GPU_BYTES;
}

static int alloc(void *ctx, unsigned gpu_index, uint64_t bytes, uint64_t *device_address_out)
{
    struct cuda_fixture_gpu *gpu = &((struct cuda_fixture *)ctx)->gpu[gpu_index];
    for (uint64_t start = 0; bytes <= CUDA_FIXTURE_GPU_BYTES && start < CUDA_FIXTURE_GPU_BYTES; start += 256) {
        for (unsigned i = 0; is_free(gpu, start, bytes) && i < CUDA_FIXTURE_ALLOCATIONS; i++) {
            if (gpu->allocations[i].bytes == 0) {
                gpu->allocations[i] = (struct cuda_fixture_range){start, bytes, 0};
                *device_address_out = start;
                return 0;
            }
        }
    }
    return -ENOMEM;
}

static int free_memory(void *ctx, unsigned gpu_index, uint64_t device_address)
{
    struct cuda_fixture_gpu *gpu = &((struct cuda_fixture *)ctx)->gpu[gpu_index];
    for (unsigned i = 0; i < CUDA_FIXTURE_ALLOCATIONS; i++) {
        struct cuda_fixture_range *range = &gpu->allocations[i];
        if (range->bytes != 0 && range->start == device_address) {
            for (unsigned p = 0; p < CUDA_FIXTURE_PINS; p++) {
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

static bool pages_free(const struct cuda_fixture_gpu *gpu, uint64_t first, uint64_t pages)
{
    for (uint64_t page = first; page < first + pages; page++) {
        if (page >= CUDA_FIXTURE_BAR_PAGES || gpu->pages[page] != CUDA_FIXTURE_PAGE_FREE) {
            return false;
        }
    }
    return true;
}

static void pages_set(struct cuda_fixture_gpu *gpu, uint64_t first, uint64_t pages, uint64_t device_address)
{
    for (uint64_t i = 0; i < pages; i++) {
        gpu->pages[first + i] =
            device_address == CUDA_FIXTURE_PAGE_FREE ? CUDA_FIXTURE_PAGE_FREE : device_address + i * 65536;
    }
}

static uint64_t pages_of(uint64_t device_address, uint64_t bytes)
{
    return (device_address % 65536 + bytes + 65535) / 65536;
}

static int pin(void *ctx, unsigned gpu_index, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    struct cuda_fixture_gpu *gpu = &((struct cuda_fixture *)ctx)->gpu[gpu_index];
    uint64_t first = 0, pages = pages_of(device_address, bytes);
    unsigned slot = 0;
    while (first < CUDA_FIXTURE_BAR_PAGES && !pages_free(gpu, first, pages)) {
        first++;
    }
    while (slot < CUDA_FIXTURE_PINS && gpu->pins[slot].bytes != 0) {
        slot++;
    }
    if (first == CUDA_FIXTURE_BAR_PAGES || slot == CUDA_FIXTURE_PINS) {
        return -ENOSPC;
    }
    pages_set(gpu, first, pages, device_address / 65536 * 65536);
    *offset_out = first * 65536 + device_address % 65536;
    *bus_address_out = CUDA_FIXTURE_BAR_BASE + ((uint64_t)gpu_index << 32) + *offset_out;
    gpu->pins[slot] = (struct cuda_fixture_range){device_address, bytes, *offset_out};
    return 0;
}

static int unpin(void *ctx, unsigned gpu_index, uint64_t offset)
{
    struct cuda_fixture_gpu *gpu = &((struct cuda_fixture *)ctx)->gpu[gpu_index];
    for (unsigned i = 0; i < CUDA_FIXTURE_PINS; i++) {
        struct cuda_fixture_range *range = &gpu->pins[i];
        if (range->bytes != 0 && range->offset == offset) {
            pages_set(gpu, offset / 65536, pages_of(range->start, range->bytes), CUDA_FIXTURE_PAGE_FREE);
            range->bytes = 0;
            return 0;
        }
    }
    FAIL("unpin of what is not pinned");
    return -EINVAL;
}

const struct backend_gpu_ops cuda_fixture_gpu_ops = {
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

const struct cuda_fixture_work *cuda_fixture_work(const struct cuda_fixture *fixture, enum backend_gpu_work_kind kind,
                                                  unsigned index)
{
    for (unsigned i = 0; i < CUDA_FIXTURE_QUEUES; i++) {
        for (unsigned j = 0; j < fixture->queues[i].count; j++) {
            if (fixture->queues[i].works[j].work.kind == kind && index-- == 0) {
                return &fixture->queues[i].works[j];
            }
        }
    }
    return NULL;
}

unsigned cuda_fixture_work_count(const struct cuda_fixture *fixture, enum backend_gpu_work_kind kind)
{
    unsigned works = 0;
    while (cuda_fixture_work(fixture, kind, works) != NULL) {
        works++;
    }
    return works;
}

uint8_t *cuda_fixture_device(struct cuda_fixture *fixture, const void *pointer)
{
    uint64_t offset = (uint64_t)(uintptr_t)pointer - 0x2300000000ull;
    return fixture->gpu[offset >> 36].memory + (offset & 0xfffffffffull);
}
