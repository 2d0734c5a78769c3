// All-reduce: in each repetition every rank adds its numbers to those of all others, and checks each sum.
#include "scenarios/workloads/hybrid.h"
#include "scenarios/workloads/reduction.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct program {
    struct workload *workload;
    struct reduction reduction;
    uint64_t *numbers;
    uint64_t count;
    uint32_t stamp;
};

// Number i of rank r in a repetition is base(i, stamp) + r.
static uint64_t base_of(uint64_t i, uint32_t stamp)
{
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + stamp;
}

static int sums_check(const struct program *program)
{
    struct workload *w = program->workload;
    uint64_t ranks = w->ranks;
    for (uint64_t i = 0; i < program->count; i++) {
        uint64_t expected = ranks * base_of(i, program->stamp) + ranks * (ranks - 1) / 2;
        if (program->numbers[i] != expected) {
            w->fail(w->ctx, "all-reduce of %" PRIu64 " B: sum %" PRIu64 " is 0x%" PRIx64 " at rank %u, not 0x%" PRIx64,
                    program->count * sizeof expected, i, program->numbers[i], w->rank, expected);
            return -EBADMSG;
        }
    }
    return 0;
}

static int repeat(struct program *program, uint32_t times)
{
    int error = 0;
    for (uint32_t n = 0; error == 0 && n < times; n++) {
        program->stamp++;
        for (uint64_t i = 0; i < program->count; i++) {
            program->numbers[i] = base_of(i, program->stamp) + program->workload->rank;
        }
        error = reduction_run(&program->reduction, program->numbers, program->count);
        if (error == 0) {
            error = sums_check(program);
        }
    }
    return error;
}

static int point_run(struct program *program, uint64_t bytes)
{
    const struct workload *w = program->workload;
    program->count = bytes / sizeof *program->numbers;
    hybrid_barrier(w); // all have ended the point before
    reduction_clear(&program->reduction);
    hybrid_barrier(w);
    int error = repeat(program, w->warmup);
    uint64_t start_ps = hybrid_now_ps(program->reduction.backend);
    if (error == 0) {
        error = repeat(program, w->iterations);
    }
    if (error != 0) {
        return error;
    }
    uint64_t span_ps = hybrid_span_ps(w, start_ps, hybrid_now_ps(program->reduction.backend));
    if (w->rank == 0) {
        hybrid_report(w, bytes, span_ps);
    }
    return 0;
}

int workload_all_reduce(struct workload *workload)
{
    uint64_t most = region_largest(workload->bytes, workload->bytes_count);
    struct program program = {.workload = workload, .numbers = malloc(most)};
    int error = program.numbers == NULL ? -ENOMEM : 0;
    if (error == 0) {
        error = reduction_open(&program.reduction, workload, "all-reduce", most / sizeof *program.numbers);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = point_run(&program, workload->bytes[i]);
    }
    if (error == 0) {
        reduction_close(&program.reduction);
    }
    free(program.numbers);
    return error;
}
