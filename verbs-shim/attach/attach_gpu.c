// The GPUs' kernel driver as an attached process sees it: each command is an attach call.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"

static unsigned count(void *ctx)
{
    (void)ctx;
    return attach_greeting()->gpu_count;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    (void)ctx;
    struct attach_reply_gpu_info reply;
    int status = (int)attach_request(gpu_info, &reply, .gpu = gpu);
    if (status == 0) {
        *info_out = reply.info;
    }
    return status;
}

// --- memory ---------------------------------------------------------------------------------------------------------

// Device memory of the process. at: where it is mapped; NULL: not mapped yet.
struct device_memory {
    struct device_memory *next;
    unsigned gpu;
    uint64_t address, bytes;
    void *at;
};

// A launched kernel that computes something when it ends.
struct effect {
    struct effect *next;
    uint64_t number;
    void (*run)(void *ctx, const struct backend_gpu_memory *memory);
    void *ctx;
};

static struct {
    atomic_flag taken;
    struct device_memory *memory;
    struct effect *effects;
    uint64_t effect_count; // number of effects so far
} gpus = {.taken = ATOMIC_FLAG_INIT};

// One thread has the run token at a time, except with --functional.
static void lists_lock(void)
{
    while (atomic_flag_test_and_set(&gpus.taken)) {
        (void)kernel_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

static void lists_unlock(void)
{
    atomic_flag_clear(&gpus.taken);
}

static int memory_alloc(void *ctx, unsigned gpu, uint64_t bytes, uint64_t *device_address_out)
{
    (void)ctx;
    struct device_memory *memory = malloc(sizeof *memory);
    struct attach_reply_gpu_alloc reply;
    int status = memory != NULL ? (int)attach_request(gpu_alloc, &reply, .gpu = gpu, .bytes = bytes) : -ENOMEM;
    if (status != 0) {
        free(memory);
        *device_address_out = 0;
        return status;
    }
    *device_address_out = reply.address;
    *memory = (struct device_memory){.gpu = gpu, .address = *device_address_out, .bytes = bytes};
    lists_lock();
    memory->next = gpus.memory;
    gpus.memory = memory;
    lists_unlock();
    return 0;
}

static void memory_forget(unsigned gpu, uint64_t device_address)
{
    lists_lock();
    struct device_memory **link = &gpus.memory;
    while (*link != NULL && ((*link)->gpu != gpu || (*link)->address != device_address)) {
        link = &(*link)->next;
    }
    struct device_memory *memory = *link;
    if (memory != NULL) {
        *link = memory->next;
    }
    lists_unlock();
    if (memory != NULL && memory->at != NULL) {
        (void)kernel_call(SYS_munmap, (long)(uintptr_t)memory->at, (long)memory->bytes, 0, 0, 0, 0);
    }
    free(memory);
}

static int memory_free(void *ctx, unsigned gpu, uint64_t device_address)
{
    (void)ctx;
    int status = (int)attach_request(gpu_free, NULL, .gpu = gpu, .address = device_address);
    if (status == 0) {
        memory_forget(gpu, device_address);
    }
    return status;
}

// Finds memory of the GPU that is not mapped. false: none.
static bool unmapped_find(unsigned gpu, uint64_t *address_out, uint64_t *bytes_out)
{
    lists_lock();
    const struct device_memory *memory = gpus.memory;
    while (memory != NULL && (memory->gpu != gpu || memory->at != NULL)) {
        memory = memory->next;
    }
    if (memory != NULL) {
        *address_out = memory->address;
        *bytes_out = memory->bytes;
    }
    lists_unlock();
    return memory != NULL;
}

// false: the memory is mapped already, or no longer exists.
static bool mapped_set(unsigned gpu, uint64_t address, void *at)
{
    lists_lock();
    struct device_memory *memory = gpus.memory;
    while (memory != NULL && (memory->gpu != gpu || memory->address != address)) {
        memory = memory->next;
    }
    bool set = memory != NULL && memory->at == NULL;
    if (set) {
        memory->at = at;
    }
    lists_unlock();
    return set;
}

// Maps all memory that the kernel may name. Other threads are scheduled during the request. The world shim does not see
// the mapping, as for the simulator's own memory.
static int memory_map(unsigned gpu)
{
    uint64_t address, bytes;
    while (unmapped_find(gpu, &address, &bytes)) {
        int status = (int)attach_request(gpu_share, NULL, .gpu = gpu, .address = address);
        if (status == -EINVAL) { // freed meanwhile; everything in the list belonged to this process
            memory_forget(gpu, address);
            continue;
        }
        if (status != 0) {
            return status;
        }
        int fd = attach_descriptor_take();
        long at = kernel_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
        if (at < 0 && at > -4096) {
            return -ENOMEM;
        }
        if (!mapped_set(gpu, address, (void *)at)) {
            (void)kernel_call(SYS_munmap, at, (long)bytes, 0, 0, 0, 0);
        }
    }
    return 0;
}

// In a child, which has no device memory.
void attach_gpu_forked(void)
{
    gpus.memory = NULL;
    gpus.effects = NULL;
    atomic_flag_clear(&gpus.taken);
}

static void *memory_at(void *ctx, uint64_t device_address, uint64_t bytes)
{
    const unsigned *gpu = ctx;
    for (const struct device_memory *memory = gpus.memory; memory != NULL; memory = memory->next) {
        uint64_t offset = device_address - memory->address;
        if (memory->gpu == *gpu && memory->at != NULL && offset < memory->bytes && bytes <= memory->bytes - offset) {
            return (char *)memory->at + offset;
        }
    }
    return NULL;
}

// --- effects --------------------------------------------------------------------------------------------------------

static struct effect *effect_take(uint64_t number)
{
    lists_lock();
    struct effect **link = &gpus.effects;
    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    struct effect *effect = *link;
    if (effect != NULL) {
        *link = effect->next;
    }
    lists_unlock();
    return effect;
}

void attach_gpu_effect(uint32_t gpu, uint64_t number)
{
    struct effect *effect = effect_take(number);
    const struct backend_gpu_memory memory = {memory_at, &gpu};
    if (effect != NULL) {
        effect->run(effect->ctx, &memory);
        free(effect);
    }
}

// Replaces the pointer by a number: the simulator knows the effect by it.
static int effect_keep(unsigned gpu, struct backend_gpu_work *work)
{
    if (attach_mode() != ATTACH_TIMED) {
        return -EOPNOTSUPP;
    }
    int status = memory_map(gpu);
    struct effect *effect = status == 0 ? malloc(sizeof *effect) : NULL;
    if (effect == NULL) {
        return status != 0 ? status : -ENOMEM;
    }
    lists_lock();
    *effect = (struct effect){gpus.effects, ++gpus.effect_count, work->effect, work->effect_ctx};
    gpus.effects = effect;
    lists_unlock();
    work->effect = NULL;
    work->effect_ctx = (void *)(uintptr_t)effect->number; // NOLINT(performance-no-int-to-ptr)
    return 0;
}

static int pin(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    (void)ctx;
    struct attach_reply_gpu_pin reply;
    int status = (int)attach_request(gpu_pin, &reply, .gpu = gpu, .address = device_address, .bytes = bytes);
    if (status == 0) {
        *offset_out = reply.offset;
        *bus_address_out = reply.bus_address;
    }
    return status;
}

static int unpin(void *ctx, unsigned gpu, uint64_t offset)
{
    (void)ctx;
    return (int)attach_request(gpu_unpin, NULL, .gpu = gpu, .offset = offset);
}

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    (void)ctx;
    struct attach_reply_gpu_queue_create reply;
    int status = (int)attach_request(gpu_queue_create, &reply, .gpu = gpu);
    *queue_out = status == 0 ? reply.queue : 0;
    return status;
}

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    (void)ctx;
    return (int)attach_request(gpu_queue_destroy, NULL, .gpu = gpu, .queue = queue);
}

static int submit(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    (void)ctx;
    struct backend_gpu_work sent = *work;
    int status = work->effect != NULL ? effect_keep(gpu, &sent) : 0;
    if (status != 0) {
        return status;
    }
    sent.effect_ctx = work->effect != NULL ? sent.effect_ctx : NULL;
    struct attach_reply_gpu_submit reply;
    status = (int)attach_request(gpu_submit, &reply, .gpu = gpu, .queue = queue, .work = sent);
    if (status == 0) {
        *ticket_out = reply.ticket;
    } else if (work->effect != NULL) {
        free(effect_take((uintptr_t)sent.effect_ctx));
    }
    return status;
}

static int poll(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    (void)ctx;
    struct attach_reply_gpu_poll reply;
    int status = (int)attach_request(gpu_poll, &reply, .gpu = gpu, .queue = queue, .ticket = ticket,
                                     .timed = ended_ps_out != NULL);
    if (status == 1 && ended_ps_out != NULL) {
        *ended_ps_out = reply.ended_ps;
    }
    return status;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket)
{
    (void)ctx;
    return (int)attach_request(gpu_wait, NULL, .gpu = gpu, .queue = queue, .ticket = ticket);
}

const struct backend_gpu_ops attach_gpu_ops = {
    .count = count,
    .info = info,
    .alloc = memory_alloc,
    .free = memory_free,
    .pin = pin,
    .unpin = unpin,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .submit = submit,
    .poll = poll,
    .wait = wait,
};
