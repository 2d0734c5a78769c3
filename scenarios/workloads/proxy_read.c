// Remote read by proxy: rank 0 asks the driver of rank 1's node for memory there, one request at a time. The time is
// from the request until its completion word is seen.
#include "scenarios/workloads/workload.h"

#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"

struct letter {
    struct peach2_proxy_address address;
    uint64_t source;
};

struct proxy_read {
    struct workload *workload;
    const struct backend *backend;
    struct region region; // what is read, or the destination
    struct letter owner;
    peach2_reader_t *reader;
};

static int give_up(const struct proxy_read *p, int error, uint64_t bytes, const char *what)
{
    p->workload->fail(p->workload->ctx, "proxy-read of %llu B: %s: %s", (unsigned long long)bytes, what,
                      strerror(-error));
    return error;
}

static int read_once(struct proxy_read *p, uint64_t bytes, uint64_t *time_ps_out)
{
    unsigned dma_error = PEACH2_DMA_OK;
    uint64_t start_ps = p->backend->ops->time_ps(p->backend->ctx);
    int error = peach2_reader_start(p->reader, p->owner.source, region_bus_address(&p->region), (uint32_t)bytes);
    if (error == 0) {
        error = peach2_reader_wait(p->reader, 0, &dma_error);
    }
    *time_ps_out = p->backend->ops->time_ps(p->backend->ctx) - start_ps;
    return error == 0 ? 0 : give_up(p, error, bytes, peach2_dma_error_name(dma_error));
}

static int point_measure(struct proxy_read *p, uint64_t bytes, uint32_t seed)
{
    struct workload *w = p->workload;
    struct workload_point point = {.bytes = bytes, .descriptors = 1, .operations = w->iterations, .min_ps = UINT64_MAX};
    region_expect(&p->region, 0, bytes, seed);
    for (uint64_t i = 0; i < (uint64_t)w->warmup + w->iterations; i++) {
        uint64_t time_ps;
        int error = read_once(p, bytes, &time_ps);
        if (error != 0) {
            return error;
        }
        if (i >= w->warmup) {
            point.total_ps += time_ps;
            point.min_ps = time_ps < point.min_ps ? time_ps : point.min_ps;
            point.max_ps = time_ps > point.max_ps ? time_ps : point.max_ps;
        }
    }
    long bad;
    if (!region_check(&p->region, 0, bytes, seed, &bad)) {
        w->fail(w->ctx, "proxy-read of %llu B: byte %ld is wrong", (unsigned long long)bytes, bad);
        return -EBADMSG;
    }
    w->report(w->ctx, &point);
    return 0;
}

// The owner only fills its memory and keeps it.
static int points_run(struct proxy_read *p)
{
    struct workload *w = p->workload;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->bytes_count; i++) {
        uint8_t mine = 0, theirs;
        if (w->rank == 1) {
            region_fill(&p->region, 0, w->bytes[i], i);
        }
        w->exchange(w->ctx, &mine, &theirs, sizeof mine);
        if (w->rank == 0) {
            error = point_measure(p, w->bytes[i], i);
        }
        w->exchange(w->ctx, &mine, &theirs, sizeof mine);
    }
    return error;
}

int workload_proxy_read(struct workload *workload)
{
    struct proxy_read p = {.workload = workload, .backend = peach2_backend(workload->board)};
    struct workload *w = workload;
    if (w->proxy == NULL) {
        w->fail(w->ctx, "proxy-read needs nodes with the service for remote reads");
        return -ENOTSUP;
    }
    int error = region_alloc(p.backend, region_largest(w->bytes, w->bytes_count), &p.region);
    if (error != 0) {
        return give_up(&p, error, 0, "no pinned memory");
    }
    const struct letter mine = {*w->proxy, region_bus_address(&p.region)};
    w->exchange(w->ctx, &mine, &p.owner, sizeof mine);
    if (w->rank == 0) {
        error = peach2_reader_create(w->board, &p.owner.address, &p.reader);
    }
    error = error == 0 ? points_run(&p) : give_up(&p, error, 0, "no reader");
    peach2_reader_destroy(p.reader);
    region_free(p.backend, &p.region);
    return error;
}
