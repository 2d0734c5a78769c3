#include "scenarios/workloads/hybrid.h"

#include <errno.h>

bool hybrid_has_near(const struct workload *workload)
{
    return workload->near_ranks > 1;
}

bool hybrid_has_far(const struct workload *workload)
{
    return workload->places->sub_clusters > 1;
}

bool hybrid_is_near(const struct workload *workload, uint32_t rank)
{
    const uint32_t *sub_cluster_of = workload->places->sub_cluster_of;
    return sub_cluster_of[rank] == sub_cluster_of[workload->rank];
}

uint32_t hybrid_number(const struct workload *workload, uint32_t rank)
{
    return workload->places->number_of[rank];
}

// --- life ----------------------------------------------------------------------------------------------------------

int hybrid_open(struct hybrid *hybrid, struct workload *workload, const char *program, uint32_t near_messages,
                uint32_t far_links, uint32_t far_slots)
{
    *hybrid = (struct hybrid){
        .workload = workload, .backend = &backend_current()->backend, .program = program, .near_workload = *workload};
    hybrid->near_workload.rank = hybrid_number(workload, workload->rank);
    hybrid->near_workload.ranks = workload->near_ranks;
    hybrid->near_workload.gather = workload->gather_near;
    int error = 0;
    if (hybrid_has_near(workload)) {
        error = group_init(&hybrid->near, &hybrid->near_workload, program, near_messages);
    }
    if (error == 0 && hybrid_has_far(workload)) {
        uint64_t bytes = region_largest(workload->bytes, workload->bytes_count);
        error = far_open(&hybrid->far, workload, program, far_links, far_slots, bytes);
    }
    return error;
}

void hybrid_close(struct hybrid *hybrid)
{
    if (hybrid_has_near(hybrid->workload)) {
        group_fini(&hybrid->near);
    }
    if (hybrid_has_far(hybrid->workload)) {
        far_close(&hybrid->far);
    }
}

// --- sending and receiving -------------------------------------------------------------------------------------------

int hybrid_point_begin(struct hybrid *hybrid, uint64_t bytes)
{
    hybrid->bytes = bytes;
    if (!hybrid_has_near(hybrid->workload)) {
        return 0;
    }
    hybrid->near.bytes = bytes;
    hybrid->near.point = hybrid->point;
    return group_reset(&hybrid->near);
}

int hybrid_start(struct hybrid *hybrid)
{
    return hybrid_has_near(hybrid->workload) ? group_start(&hybrid->near) : 0;
}

int hybrid_wait_sent(struct hybrid *hybrid)
{
    int error = hybrid_has_near(hybrid->workload) ? group_wait_sent(&hybrid->near) : 0;
    return error == 0 && hybrid_has_far(hybrid->workload) ? far_flush(&hybrid->far) : error;
}

static uint32_t seed_of(const struct hybrid *hybrid, uint32_t from, uint32_t to)
{
    return (hybrid->point * hybrid->workload->ranks + from) * hybrid->workload->ranks + to;
}

static int bad_data(struct hybrid *hybrid, uint32_t from, long byte)
{
    struct workload *w = hybrid->workload;
    w->fail(w->ctx, "%s of %llu B: byte %ld of the message from rank %u to rank %u is wrong", hybrid->program,
            (unsigned long long)hybrid->bytes, byte, from, w->rank);
    return -EBADMSG;
}

void hybrid_far_fill(struct hybrid *hybrid, uint32_t slot, uint32_t to)
{
    region_fill(&hybrid->far.send, far_offset(&hybrid->far, slot), hybrid->bytes,
                seed_of(hybrid, hybrid->workload->rank, to));
}

void hybrid_far_expect(struct hybrid *hybrid, uint32_t slot, uint32_t from)
{
    region_invert(&hybrid->far.receive, far_offset(&hybrid->far, slot), hybrid->bytes,
                  seed_of(hybrid, from, hybrid->workload->rank));
    far_clear(&hybrid->far, slot, hybrid->bytes);
}

// The word behind the payload also has the number of the point, so that points need no reset.
static uint64_t number_of(const struct hybrid *hybrid, uint32_t stamp)
{
    return (uint64_t)(hybrid->point + 1) << 32 | stamp;
}

int hybrid_far_send(struct hybrid *hybrid, uint32_t link, uint32_t from_slot, uint32_t to, uint32_t to_slot,
                    uint32_t stamp)
{
    region_stamp(&hybrid->far.send, far_offset(&hybrid->far, from_slot), hybrid->bytes,
                 seed_of(hybrid, hybrid->workload->rank, to), stamp);
    return far_send(&hybrid->far, link, from_slot, to_slot, hybrid->bytes, number_of(hybrid, stamp));
}

int hybrid_far_receive(struct hybrid *hybrid, uint32_t slot, uint32_t from, uint32_t stamp)
{
    long bad;
    int error = far_wait(&hybrid->far, slot, hybrid->bytes, number_of(hybrid, stamp));
    if (error == 0 && !region_is_stamped(&hybrid->far.receive, far_offset(&hybrid->far, slot), hybrid->bytes,
                                         seed_of(hybrid, from, hybrid->workload->rank), stamp, &bad)) {
        return bad_data(hybrid, from, bad);
    }
    return error;
}

int hybrid_far_check_all(struct hybrid *hybrid, uint32_t slot, uint32_t from)
{
    long bad;
    size_t offset = far_offset(&hybrid->far, slot);
    uint32_t seed = seed_of(hybrid, from, hybrid->workload->rank);
    region_stamp(&hybrid->far.receive, offset, hybrid->bytes, seed, 0);
    return region_holds(&hybrid->far.receive, offset, hybrid->bytes, seed, &bad) ? 0 : bad_data(hybrid, from, bad);
}

int hybrid_check_guards(struct hybrid *hybrid)
{
    struct workload *w = hybrid->workload;
    int error = hybrid_has_near(w) ? group_check_guards(&hybrid->near) : 0;
    if (error == 0 && hybrid_has_far(w) &&
        (!region_is_guarded(&hybrid->far.send) || !region_is_guarded(&hybrid->far.receive))) {
        w->fail(w->ctx, "%s of %llu B: bytes beside the messages of rank %u were written", hybrid->program,
                (unsigned long long)hybrid->bytes, w->rank);
        return -EBADMSG;
    }
    return error;
}

// --- together ------------------------------------------------------------------------------------------------------

void hybrid_barrier(const struct workload *workload)
{
    workload->post(workload->ctx, NULL, 0);
}

uint64_t hybrid_now_ps(const struct backend *backend)
{
    return backend->ops->time_ps(backend->ctx);
}

struct span {
    uint64_t start_ps, end_ps;
};

uint64_t hybrid_span_ps(const struct workload *workload, uint64_t start_ps, uint64_t end_ps)
{
    struct span whole = {start_ps, end_ps};
    workload->post(workload->ctx, &whole, sizeof whole);
    for (uint32_t rank = 0; workload->rank == 0 && rank < workload->ranks; rank++) {
        const struct span *of = workload->letter(workload->ctx, rank);
        whole.start_ps = of->start_ps < whole.start_ps ? of->start_ps : whole.start_ps;
        whole.end_ps = of->end_ps > whole.end_ps ? of->end_ps : whole.end_ps;
    }
    return whole.end_ps - whole.start_ps;
}

void hybrid_report(const struct workload *workload, uint64_t bytes, uint64_t span_ps)
{
    uint64_t mean_ps = span_ps / workload->iterations;
    const struct workload_point point = {.bytes = bytes,
                                         .descriptors = 1,
                                         .operations = workload->iterations,
                                         .total_ps = span_ps,
                                         .min_ps = mean_ps,
                                         .max_ps = mean_ps};
    workload->report(workload->ctx, &point);
}
