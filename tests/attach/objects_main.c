// Objects that are ended while somebody uses them.
//   "queue destroy|wait|poll"  a GPU queue with work is destroyed, while another thread does this with it
//   "memory"                   pinned memory is freed under a region; the bus address of the next allocation tells
//                              whether it was given away
//   "ring"                     the same under an event queue
//   "rows"                     copies of many rows are submitted to one queue: does the submitter wait?
//   "kernel"                   a kernel of each GPU writes its number; prints what is there
//   "word"                     a region ends while a thread waits for a word of it
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/hca/hca_driver.h"

#define US UINT64_C(1000000)

static const struct backend *backend;

// --- GPU queues ------------------------------------------------------------------------------------------------------

static uint32_t queue;
static uint64_t ticket;
static volatile int destroyed = 1;

static void *destroyer_main(void *arg)
{
    (void)arg;
    attach_thread_began();
    (void)attach_wait(0, attach_now_ps() + 10 * US);
    destroyed = backend->ops->gpu->queue_destroy(backend->ctx, 0, queue);
    attach_may_wake();
    return NULL;
}

static int queue_poll_until_gone(void)
{
    int result = 0;
    while (result == 0) {
        result = backend->ops->gpu->poll(backend->ctx, 0, queue, ticket, NULL);
    }
    return result;
}

static int queue_run(const char *what)
{
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    const struct backend_gpu_work work = {.kind = BACKEND_GPU_KERNEL, .duration_ns = 100000};
    pthread_t thread;
    if (gpu->queue_create(backend->ctx, 0, &queue) != 0 || gpu->submit(backend->ctx, 0, queue, &work, &ticket) != 0 ||
        pthread_create(&thread, NULL, destroyer_main, NULL) != 0) {
        return 3;
    }
    attach_thread_started();
    int result;
    if (strcmp(what, "destroy") == 0) {
        (void)attach_wait(0, attach_now_ps() + 20 * US); // the other thread is in its call
        result = gpu->queue_destroy(backend->ctx, 0, queue);
    } else {
        result = strcmp(what, "wait") == 0 ? gpu->wait(backend->ctx, 0, queue, ticket) : queue_poll_until_gone();
    }
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    printf("%d %d %d\n", result, destroyed, gpu->wait(backend->ctx, 0, queue, ticket));
    return 0;
}

// The time that it takes to submit so many rows.
static uint64_t rows_submit(uint64_t address, uint64_t rows)
{
    const struct backend_gpu_work work = {
        .kind = BACKEND_GPU_SET, .device_address = address, .bytes = 4, .rows = rows, .device_pitch = 4};
    uint64_t begin_ps = attach_now_ps();
    if (backend->ops->gpu->submit(backend->ctx, 0, queue, &work, &ticket) != 0) {
        exit(4);
    }
    return attach_now_ps() - begin_ps;
}

static int rows_run(void)
{
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    uint64_t address;
    if (gpu->queue_create(backend->ctx, 0, &queue) != 0 || gpu->alloc(backend->ctx, 0, 1 << 20, &address) != 0) {
        return 3;
    }
    uint64_t few_ps = rows_submit(address, 1000), many_ps = rows_submit(address, 100000);
    printf("%d ", many_ps > 10 * few_ps);
    printf("%d\n", gpu->wait(backend->ctx, 0, queue, ticket));
    return 0;
}

// Each GPU has its own addresses, from the same one on.
static uint64_t device_address;

static void number_write(void *number, const struct backend_gpu_memory *memory)
{
    unsigned char *at = memory->at(memory->ctx, device_address, 1);
    if (at != NULL) {
        *at = *(const unsigned char *)number;
    }
}

static int kernel_run(unsigned gpu_number)
{
    static unsigned char numbers[] = {10, 11};
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    struct backend_buffer result;
    const struct backend_gpu_work kernel = {
        .kind = BACKEND_GPU_KERNEL, .duration_ns = 100, .effect = number_write, .effect_ctx = &numbers[gpu_number]};
    if (gpu->alloc(backend->ctx, gpu_number, 4096, &device_address) != 0 ||
        gpu->queue_create(backend->ctx, gpu_number, &queue) != 0 ||
        backend->ops->alloc_pinned(backend->ctx, 4096, &result) != 0 ||
        gpu->submit(backend->ctx, gpu_number, queue, &kernel, &ticket) != 0) {
        return 3;
    }
    const struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_HOST,
                                          .device_address = device_address,
                                          .other_address = result.bus_address,
                                          .bytes = 1,
                                          .rows = 1};
    int error = gpu->submit(backend->ctx, gpu_number, queue, &copy, &ticket);
    error = error != 0 ? error : gpu->wait(backend->ctx, gpu_number, queue, ticket);
    printf("%d ", *(volatile unsigned char *)result.address);
    return error;
}

// --- memory ----------------------------------------------------------------------------------------------------------

static int command(struct hca_command *given)
{
    return backend->ops->hca_command(backend->ctx, given);
}

static uint64_t pinned_alloc(struct backend_buffer *buffer)
{
    if (backend->ops->alloc_pinned(backend->ctx, 4096, buffer) != 0) {
        exit(4);
    }
    return buffer->bus_address;
}

static uint32_t object_create(struct hca_command given)
{
    if (command(&given) != 0) {
        exit(5);
    }
    return given.number;
}

static void object_destroy(enum hca_command_id id, uint32_t number)
{
    struct hca_command given = {.id = id, .number = number};
    printf("%d ", command(&given));
}

static int memory_run(bool ring)
{
    struct backend_buffer first, record, other, last;
    uint32_t pd = object_create((struct hca_command){.id = HCA_CMD_PD_CREATE});
    (void)pinned_alloc(&record);
    uint64_t address = pinned_alloc(&first);
    uint32_t user =
        ring
            ? object_create((struct hca_command){
                  .id = HCA_CMD_EQ_CREATE, .eq_create = {.base = address, .record = record.bus_address, .entries = 64}})
            : object_create((struct hca_command){
                  .id = HCA_CMD_MR_REGISTER,
                  .mr_register = {.pdn = pd, .iova = 0x10000, .bytes = 4096, .access = 0xf, .bus_address = address}});
    backend->ops->free_pinned(backend->ctx, &first);
    printf("%d ", pinned_alloc(&other) == address); // given away?
    struct hca_command again = {.id = HCA_CMD_MR_REGISTER,
                                .mr_register = {.pdn = pd, .iova = 0, .bytes = 64, .bus_address = address}};
    printf("%d ", command(&again)); // out of reach?
    object_destroy(ring ? HCA_CMD_EQ_DESTROY : HCA_CMD_MR_DEREGISTER, user);
    printf("%d\n", pinned_alloc(&last) == address); // free now?
    return 0;
}

static uint32_t region;

static void *deregister_main(void *arg)
{
    (void)arg;
    attach_thread_began();
    (void)attach_wait(0, attach_now_ps() + 10 * US);
    object_destroy(HCA_CMD_MR_DEREGISTER, region);
    attach_may_wake();
    return NULL;
}

static int word_run(void)
{
    static _Alignas(4096) uint64_t words[512];
    pthread_t thread;
    uint32_t pd = object_create((struct hca_command){.id = HCA_CMD_PD_CREATE});
    region = object_create((struct hca_command){
        .id = HCA_CMD_MR_REGISTER,
        .mr_register = {.pdn = pd, .iova = (uint64_t)(uintptr_t)words, .bytes = sizeof words, .access = 0xf}});
    if (pthread_create(&thread, NULL, deregister_main, NULL) != 0) {
        return 3;
    }
    attach_thread_started();
    int result = backend->ops->wait_word(backend->ctx, words, UINT64_MAX, 1, 0);
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    printf("%d\n", result);
    return 0;
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    if (process == NULL || argc < 2) {
        return 3;
    }
    backend = &process->backend;
    if (strcmp(argv[1], "queue") == 0) {
        return queue_run(argv[2]);
    }
    if (strcmp(argv[1], "rows") == 0) {
        return rows_run();
    }
    if (strcmp(argv[1], "kernel") == 0) {
        return kernel_run(0) + kernel_run(1);
    }
    return strcmp(argv[1], "word") == 0 ? word_run() : memory_run(strcmp(argv[1], "ring") == 0);
}
