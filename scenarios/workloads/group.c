#include "scenarios/workloads/group.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_ALIGNMENT 64u
#define TAG               1u

// --- errors --------------------------------------------------------------------------------------------------------

int group_tca(struct group *group, int code, const char *what)
{
    if (code == tcaSuccess) {
        return 0;
    }
    // libtca's messages begin with the call, except those about a missing set-up.
    const char *message = tcaLastMessage();
    bool named = strncmp(message, what, strlen(what)) == 0;
    group->workload->fail(group->workload->ctx, "%s of %llu B: %s%s%s", group->program,
                          (unsigned long long)group->bytes, named ? "" : what, named ? "" : ": ", message);
    return -EIO;
}

static int bad_data(struct group *group, uint32_t from, long byte)
{
    struct workload *w = group->workload;
    w->fail(w->ctx, "%s of %llu B: byte %ld of the message from rank %u to rank %u is wrong", group->program,
            (unsigned long long)group->bytes, byte, from, w->rank);
    return -EBADMSG;
}

// --- life ----------------------------------------------------------------------------------------------------------

static size_t message_stride(uint64_t bytes)
{
    return (size_t)((bytes + MESSAGE_ALIGNMENT - 1) / MESSAGE_ALIGNMENT * MESSAGE_ALIGNMENT);
}

static int comm_allgather(void *ctx, const void *mine, void *all, size_t bytes)
{
    const struct workload *w = ctx;
    if (bytes > WORKLOAD_LETTER_MAX) {
        return -EMSGSIZE;
    }
    w->gather(w->ctx, mine, all, bytes);
    return 0;
}

int group_cuda(struct group *group, int code, const char *what)
{
    if ((cudaError_t)code == cudaSuccess) {
        return 0;
    }
    group->workload->fail(group->workload->ctx, "%s of %llu B: %s: %s", group->program,
                          (unsigned long long)group->bytes, what, cudaGetErrorString((cudaError_t)code));
    return -EIO;
}

// Allocates device memory with the layout of the image, including the guards.
static int device_alloc(struct group *group, int gpu, const struct region *image, void **device_out,
                        tcaHandle *handle_out)
{
    size_t bytes = region_memory_bytes(image->capacity);
    int error = group_cuda(group, (int)cudaSetDevice(gpu), "cudaSetDevice");
    if (error == 0) {
        error = group_tca(group, tcaMalloc(device_out, bytes, tcaMemoryGPU), "tcaMalloc of GPU memory");
    }
    if (error != 0) {
        return error;
    }
    size_t guard_bytes = (bytes - image->capacity) / 2;
    return group_tca(group,
                     tcaCreateHandle(handle_out, (uint8_t *)*device_out + guard_bytes, image->capacity, tcaMemoryGPU),
                     "tcaCreateHandle of GPU memory");
}

static int memory_alloc(struct group *group, size_t capacity, void **memory_out, struct region *region_out,
                        tcaHandle *handle_out)
{
    int error = group_tca(group, tcaMalloc(memory_out, region_memory_bytes(capacity), tcaMemoryCPU), "tcaMalloc");
    if (error != 0) {
        return error;
    }
    region_over(*memory_out, capacity, region_out);
    region_guard(region_out);
    return group_tca(group, tcaCreateHandle(handle_out, region_data(region_out), capacity, tcaMemoryCPU),
                     "tcaCreateHandle");
}

static int handles_gather(struct group *group)
{
    tcaHandle *list;
    size_t guard_bytes = (region_memory_bytes(group->receive.capacity) - group->receive.capacity) / 2;
    void *memory = group->receive_device != NULL ? group->receive_device : group->receive_memory;
    int error = group_tca(group,
                          tcaCreateHandleList(&list, (int)group->workload->ranks, (uint8_t *)memory + guard_bytes,
                                              group->receive.capacity),
                          "tcaCreateHandleList");
    if (error != 0) {
        return error;
    }
    memcpy(group->others, list, group->workload->ranks * sizeof *list);
    free(list);
    return 0;
}

static int parameters_check(const struct group *group)
{
    const struct workload *w = group->workload;
    if (w->method != WORKLOAD_CHAIN_HOST && w->method != WORKLOAD_CHAIN_BOARD) {
        w->fail(w->ctx, "%s needs a chain", group->program);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < w->bytes_count; i++) {
        if (w->bytes[i] % 4 != 0) {
            w->fail(w->ctx, "%s needs a multiple of 4 B, not %llu B", group->program, (unsigned long long)w->bytes[i]);
            return -EINVAL;
        }
    }
    return 0;
}

static int memories_alloc(struct group *group, size_t capacity)
{
    const struct workload *w = group->workload;
    int error = memory_alloc(group, capacity, &group->send_memory, &group->send, &group->send_handle);
    if (error == 0) {
        error = memory_alloc(group, capacity, &group->receive_memory, &group->receive, &group->receive_handle);
    }
    if (error == 0 && w->source_gpu >= 0) {
        error = device_alloc(group, w->source_gpu, &group->send, &group->send_device, &group->send_handle);
    }
    if (error == 0 && w->destination_gpu >= 0) {
        error =
            device_alloc(group, w->destination_gpu, &group->receive, &group->receive_device, &group->receive_handle);
    }
    return error;
}

int group_init(struct group *group, struct workload *workload, const char *program, uint32_t messages)
{
    *group = (struct group){.workload = workload, .backend = peach2_backend(workload->board), .program = program};
    int error = parameters_check(group);
    if (error != 0) {
        return error;
    }
    group->bytes = region_largest(workload->bytes, workload->bytes_count);
    int code = tcaInit();
    if (code != tcaSuccess) {
        workload->fail(workload->ctx, "%s: tcaInit: %s", program, tcaStrError(code));
        return -EIO;
    }
    const struct tcaComm comm = {workload, (int)workload->rank, (int)workload->ranks, comm_allgather};
    size_t capacity = message_stride(group->bytes) * messages;
    error = group_tca(group, tcaSetComm(&comm), "tcaSetComm");
    if (error == 0) {
        error = memories_alloc(group, capacity);
    }
    return error == 0 ? handles_gather(group) : error;
}

static void descs_free(struct group *group)
{
    for (unsigned channel = 0; channel < tcaChannels; channel++) {
        if (group->descs[channel] != NULL) {
            (void)tcaDescFree(group->descs[channel]);
            group->descs[channel] = NULL;
        }
    }
}

void group_fini(struct group *group)
{
    descs_free(group);
    if (group->send_device != NULL) {
        (void)tcaFree(group->send_device, tcaMemoryGPU);
    }
    if (group->receive_device != NULL) {
        (void)tcaFree(group->receive_device, tcaMemoryGPU);
    }
    if (group->send_memory != NULL) {
        (void)tcaFree(group->send_memory, tcaMemoryCPU);
    }
    if (group->receive_memory != NULL) {
        (void)tcaFree(group->receive_memory, tcaMemoryCPU);
    }
}

// --- sending -------------------------------------------------------------------------------------------------------

size_t group_offset(const struct group *group, uint32_t message)
{
    return message_stride(group->bytes) * message;
}

uint32_t group_seed(const struct group *group, uint32_t from, uint32_t to)
{
    return (group->point * WORKLOAD_RANKS_MAX + from) * WORKLOAD_RANKS_MAX + to;
}

int group_reset(struct group *group)
{
    descs_free(group);
    return 0;
}

static int flags_of(const struct workload *w)
{
    return tcaDMANotify | tcaDMAPipeline | (w->method == WORKLOAD_CHAIN_BOARD ? tcaDMAUseInternal : 0) |
           (w->notify_board ? tcaDMAUseNotifyInternal : 0);
}

int group_send_add(struct group *group, unsigned channel, uint32_t from_message, uint32_t to, uint32_t to_message)
{
    tcaDesc **desc = &group->descs[channel];
    if (*desc == NULL) {
        *desc = tcaDescNew();
    }
    return group_tca(group,
                     tcaDescSetMemcpy(*desc, &group->others[to], group_offset(group, to_message), &group->send_handle,
                                      group_offset(group, from_message), group->bytes, flags_of(group->workload),
                                      (int)to_message, TAG),
                     "tcaDescSetMemcpy");
}

int group_set(struct group *group)
{
    int error = 0;
    for (unsigned channel = 0; error == 0 && channel < tcaChannels; channel++) {
        if (group->descs[channel] != NULL) {
            error = group_tca(group, tcaDescSet(group->descs[channel], (int)channel), "tcaDescSet");
        }
    }
    return error;
}

int group_start(struct group *group)
{
    int error = 0;
    for (unsigned channel = 0; error == 0 && channel < tcaChannels; channel++) {
        if (group->descs[channel] != NULL) {
            error = group_tca(group, tcaStartDMADesc((int)channel), "tcaStartDMADesc");
        }
    }
    return error;
}

int group_wait_sent(struct group *group)
{
    int error = 0;
    for (unsigned channel = 0; error == 0 && channel < tcaChannels; channel++) {
        if (group->descs[channel] != NULL) {
            error = group_tca(group, tcaWaitDMAC((int)channel), "tcaWaitDMAC");
        }
    }
    return error;
}

int group_wait_received(struct group *group, uint32_t message, uint32_t from)
{
    return group_tca(group, tcaWaitDMARecvDesc(&group->others[from], (int)message, TAG), "tcaWaitDMARecvDesc");
}

// --- data ----------------------------------------------------------------------------------------------------------

bool group_is_stamped(const struct group *group)
{
    return group->send_device == NULL && group->receive_device == NULL;
}

void group_fill(struct group *group, uint32_t message, uint32_t to, uint32_t stamp)
{
    region_fill(&group->send, group_offset(group, message), group->bytes, group_seed(group, group->workload->rank, to));
    group_stamp(group, message, to, stamp);
}

void group_stamp(struct group *group, uint32_t message, uint32_t to, uint32_t stamp)
{
    region_stamp(&group->send, group_offset(group, message), group->bytes, group_seed(group, group->workload->rank, to),
                 stamp);
}

void group_expect(struct group *group, uint32_t message, uint32_t from)
{
    region_invert(&group->receive, group_offset(group, message), group->bytes,
                  group_seed(group, from, group->workload->rank));
}

int group_check_stamp(struct group *group, uint32_t message, uint32_t from, uint32_t stamp)
{
    long bad;
    if (region_is_stamped(&group->receive, group_offset(group, message), group->bytes,
                          group_seed(group, from, group->workload->rank), stamp, &bad)) {
        return 0;
    }
    return bad_data(group, from, bad);
}

int group_check_all(struct group *group, uint32_t message, uint32_t from)
{
    long bad;
    uint32_t seed = group_seed(group, from, group->workload->rank);
    if (group_is_stamped(group)) {
        region_stamp(&group->receive, group_offset(group, message), group->bytes, seed, 0);
    }
    if (region_holds(&group->receive, group_offset(group, message), group->bytes, seed, &bad)) {
        return 0;
    }
    return bad_data(group, from, bad);
}

int group_check_guards(struct group *group)
{
    if (region_is_guarded(&group->send) && region_is_guarded(&group->receive)) {
        return 0;
    }
    group->workload->fail(group->workload->ctx, "%s of %llu B: bytes beside the messages of rank %u were written",
                          group->program, (unsigned long long)group->bytes, group->workload->rank);
    return -EBADMSG;
}

static int image_move(struct group *group, void *device, const struct region *image, enum cudaMemcpyKind kind)
{
    void *host = image->buffer.address;
    bool down = kind == cudaMemcpyHostToDevice;
    if (device == NULL) {
        return 0;
    }
    return group_cuda(
        group, (int)cudaMemcpy(down ? device : host, down ? host : device, region_memory_bytes(image->capacity), kind),
        "cudaMemcpy");
}

int group_push(struct group *group)
{
    int error = image_move(group, group->send_device, &group->send, cudaMemcpyHostToDevice);
    if (error == 0) {
        error = image_move(group, group->receive_device, &group->receive, cudaMemcpyHostToDevice);
    }
    return error == 0 && group->receive_device != NULL
               ? group_cuda(group, (int)cudaDeviceSynchronize(), "synchronizing")
               : error;
}

int group_pull(struct group *group)
{
    return image_move(group, group->receive_device, &group->receive, cudaMemcpyDeviceToHost);
}

// --- together ------------------------------------------------------------------------------------------------------

void group_barrier(struct group *group)
{
    uint8_t mine = 0, all[WORKLOAD_RANKS_MAX];
    group->workload->gather(group->workload->ctx, &mine, all, sizeof mine);
}

struct span {
    uint64_t start_ps, end_ps;
};

uint64_t group_span_ps(struct group *group, uint64_t start_ps, uint64_t end_ps)
{
    const struct span mine = {start_ps, end_ps};
    struct span all[WORKLOAD_RANKS_MAX], whole = mine;
    group->workload->gather(group->workload->ctx, &mine, all, sizeof mine);
    for (uint32_t i = 0; i < group->workload->ranks; i++) {
        whole.start_ps = all[i].start_ps < whole.start_ps ? all[i].start_ps : whole.start_ps;
        whole.end_ps = all[i].end_ps > whole.end_ps ? all[i].end_ps : whole.end_ps;
    }
    return whole.end_ps - whole.start_ps;
}

uint64_t group_now_ps(const struct group *group)
{
    return group->backend->ops->time_ps(group->backend->ctx);
}

// --- a program of repetitions between barriers -----------------------------------------------------------------------

// Notes the shortest and longest sending of all ranks and repetitions: how fair the fabric is.
static void fairness_note(struct group *group, uint64_t sent_ps, struct workload_point *point)
{
    uint64_t all[WORKLOAD_RANKS_MAX];
    group->workload->gather(group->workload->ctx, &sent_ps, all, sizeof sent_ps);
    for (uint32_t i = 0; i < group->workload->ranks; i++) {
        if (all[i] == 0) {
            continue; // a rank that only receives
        }
        point->min_ps = all[i] < point->min_ps ? all[i] : point->min_ps;
        point->max_ps = all[i] > point->max_ps ? all[i] : point->max_ps;
    }
}

static int point_measure(struct group *group, const struct group_program *program)
{
    const struct workload *w = group->workload;
    struct workload_point point = {
        .bytes = program->moved(group), .descriptors = 1, .operations = w->iterations, .min_ps = UINT64_MAX};
    uint32_t repetitions = w->warmup + w->iterations;
    for (uint32_t i = 0; i < repetitions; i++) {
        uint64_t sent_ps = 0;
        group_barrier(group);
        uint64_t start_ps = group_now_ps(group);
        int error = program->run(group, i + 1, &sent_ps);
        if (error != 0) {
            return error;
        }
        uint64_t span_ps = group_span_ps(group, start_ps, group_now_ps(group));
        if (i >= w->warmup) {
            point.total_ps += span_ps;
            fairness_note(group, sent_ps, &point);
        }
    }
    int error = program->check(group);
    if (error == 0) {
        error = group_check_guards(group);
    }
    group_barrier(group); // no rank reports while a check may still fail
    if (error == 0 && w->rank == 0) {
        w->report(w->ctx, &point);
    }
    return error;
}

int group_program_run(struct workload *workload, const struct group_program *program)
{
    struct group group;
    int error = group_init(&group, workload, program->name, program->messages(workload));
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        group.bytes = workload->bytes[i];
        error = group_reset(&group);
        if (error == 0) {
            error = program->prepare(&group);
        }
        if (error == 0) {
            error = group_set(&group);
        }
        if (error == 0) {
            error = point_measure(&group, program);
        }
        group.point++;
    }
    if (error == 0) {
        group_fini(&group);
    }
    return error;
}
