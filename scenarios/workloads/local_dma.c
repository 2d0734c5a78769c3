// DMA from memory to memory of one node, host or GPU, as hanawa2013 4.1 measures it: the clock is read immediately
// before the write that starts the channel, and again when the local completion status is seen.
#include "scenarios/workloads/workload.h"

#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"

struct local_dma {
    struct workload *workload;
    const struct backend *backend;
    struct region source, destination;
    struct region scratch; // the chain, as transfers
    struct backend_buffer status;
    // of the current point
    uint32_t point;
    uint64_t bytes, descriptors;
    peach2_chain_t *chain;
};

static int give_up(const struct local_dma *l, int error, const char *what)
{
    l->workload->fail(l->workload->ctx, "local DMA of %llu x %llu B: %s: %s", (unsigned long long)l->descriptors,
                      (unsigned long long)l->bytes, what, strerror(-error));
    return error;
}

// --- one point -----------------------------------------------------------------------------------------------------

static struct peach2_transfer piece(const struct local_dma *l, uint64_t index)
{
    return (struct peach2_transfer){
        .source = region_bus_address(&l->source) + index * l->bytes,
        .destination = region_bus_address(&l->destination) + index * l->bytes,
        .bytes = (uint32_t)l->bytes,
    };
}

static int chain_prepare(struct local_dma *l, const struct peach2_notify *notify)
{
    struct workload *w = l->workload;
    struct peach2_transfer *transfers = (void *)region_data(&l->scratch);
    for (uint64_t i = 0; i < l->descriptors; i++) {
        transfers[i] = piece(l, i);
    }
    enum peach2_chain_memory memory = w->method == WORKLOAD_CHAIN_BOARD ? PEACH2_CHAIN_BOARD : PEACH2_CHAIN_HOST;
    int error = peach2_chain_create(w->board, memory, 0, transfers, (uint32_t)l->descriptors, &l->chain);
    if (error != 0) {
        return give_up(l, error, "building the chain");
    }
    error = peach2_chain_prepare(w->board, w->channel, l->chain, notify);
    return error == 0 ? 0 : give_up(l, error, "preparing the chain");
}

static int point_prepare(struct local_dma *l)
{
    struct workload *w = l->workload;
    size_t total = (size_t)(l->bytes * l->descriptors);
    region_fill(&l->source, 0, total, l->point);
    region_expect(&l->destination, 0, total, l->point);
    int error = region_push(l->backend, &l->source);
    if (error == 0) {
        error = region_push(l->backend, &l->destination);
    }
    if (error != 0) {
        return give_up(l, error, "filling the buffers");
    }
    const struct peach2_notify notify = {.local_address = l->status.bus_address, .value = l->point};
    if (w->method != WORKLOAD_REGISTER) {
        return chain_prepare(l, &notify);
    }
    const struct peach2_transfer transfer = piece(l, 0);
    error = peach2_dma_prepare(w->board, w->channel, &transfer, &notify);
    return error == 0 ? 0 : give_up(l, error, "preparing the registers");
}

static int transfer_run(struct local_dma *l, uint64_t *time_ps_out)
{
    struct workload *w = l->workload;
    const struct backend *backend = l->backend;
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    int error = peach2_dma_start(w->board, w->channel);
    if (error != 0) {
        return give_up(l, error, "starting");
    }
    unsigned dma_error = PEACH2_DMA_OK;
    error = peach2_wait_status(w->board, l->status.address, 0, NULL, &dma_error);
    *time_ps_out = backend->ops->time_ps(backend->ctx) - start_ps;
    if (error == -EREMOTEIO) {
        return give_up(l, error, peach2_dma_error_name(dma_error));
    }
    return error == 0 ? 0 : give_up(l, error, "waiting");
}

static int point_check(const struct local_dma *l)
{
    struct workload *w = l->workload;
    long bad;
    int error = region_pull(l->backend, &l->destination);
    if (error != 0) {
        return give_up(l, error, "fetching the destination");
    }
    if (region_check(&l->destination, 0, (size_t)(l->bytes * l->descriptors), l->point, &bad)) {
        return 0;
    }
    w->fail(w->ctx, "local DMA of %llu x %llu B: byte %ld of the destination is wrong",
            (unsigned long long)l->descriptors, (unsigned long long)l->bytes, bad);
    return -EBADMSG;
}

static int point_measure(struct local_dma *l)
{
    struct workload *w = l->workload;
    struct workload_point result = {.bytes = l->bytes * l->descriptors,
                                    .descriptors = l->descriptors,
                                    .operations = w->iterations,
                                    .min_ps = UINT64_MAX};
    uint64_t transfers = (uint64_t)w->warmup + w->iterations;
    for (uint64_t i = 0; i < transfers; i++) {
        uint64_t time_ps = 0;
        int error = transfer_run(l, &time_ps);
        if (error != 0) {
            return error;
        }
        if (i < w->warmup) {
            continue;
        }
        result.total_ps += time_ps;
        result.min_ps = time_ps < result.min_ps ? time_ps : result.min_ps;
        result.max_ps = time_ps > result.max_ps ? time_ps : result.max_ps;
    }
    int error = point_check(l);
    if (error == 0) {
        w->report(w->ctx, &result);
    }
    return error;
}

static int point_run(struct local_dma *l)
{
    int error = point_prepare(l);
    if (error == 0) {
        error = point_measure(l);
    }
    peach2_chain_destroy(l->chain);
    l->chain = NULL;
    l->point++;
    return error;
}

// --- the program ---------------------------------------------------------------------------------------------------

static int parameters_check(const struct workload *w)
{
    if (w->method == WORKLOAD_PIO) {
        w->fail(w->ctx, "local DMA is not done by PIO");
        return -EINVAL;
    }
    for (uint32_t i = 0; i < w->descriptors_count; i++) {
        if (w->method == WORKLOAD_REGISTER && w->descriptors[i] != 1) {
            w->fail(w->ctx, "register mode moves one transfer, not %llu", (unsigned long long)w->descriptors[i]);
            return -EINVAL;
        }
    }
    return 0;
}

static int buffers_alloc(struct local_dma *l)
{
    const struct workload *w = l->workload;
    uint64_t descriptors = region_largest(w->descriptors, w->descriptors_count);
    size_t capacity = (size_t)(region_largest(w->bytes, w->bytes_count) * descriptors);
    int error = region_alloc_in(l->backend, w->source_gpu, capacity, &l->source);
    if (error == 0) {
        error = region_alloc_in(l->backend, w->destination_gpu, capacity, &l->destination);
    }
    if (error == 0) {
        error = region_alloc(l->backend, (size_t)descriptors * sizeof(struct peach2_transfer), &l->scratch);
    }
    if (error == 0) {
        error = l->backend->ops->alloc_pinned(l->backend->ctx, sizeof(uint64_t), &l->status);
    }
    if (error != 0) {
        w->fail(w->ctx, "local DMA: no memory for %llu B: %s", (unsigned long long)capacity, strerror(-error));
    }
    return error;
}

static void buffers_free(struct local_dma *l)
{
    region_free(l->backend, &l->source);
    region_free(l->backend, &l->destination);
    region_free(l->backend, &l->scratch);
    if (l->status.address != NULL) {
        l->backend->ops->free_pinned(l->backend->ctx, &l->status);
    }
}

int workload_local_dma(struct workload *workload)
{
    int error = parameters_check(workload);
    if (error != 0) {
        return error;
    }
    struct local_dma l = {.workload = workload, .backend = peach2_backend(workload->board)};
    error = buffers_alloc(&l);
    for (uint32_t d = 0; error == 0 && d < workload->descriptors_count; d++) {
        for (uint32_t b = 0; error == 0 && b < workload->bytes_count; b++) {
            l.bytes = workload->bytes[b];
            l.descriptors = workload->descriptors[d];
            error = point_run(&l);
        }
    }
    buffers_free(&l);
    return error;
}
