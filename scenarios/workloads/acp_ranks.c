#include "scenarios/workloads/acp_ranks.h"

#include <errno.h>

#include "verbs-shim/acp/boot.h"

int acp_ranks_fail(const struct acp_ranks *ranks, const char *what)
{
    const struct workload *w = ranks->workload;
    w->fail(w->ctx, "%s of %llu B: %s", ranks->program, (unsigned long long)ranks->bytes, what);
    return -EIO;
}

uint64_t acp_ranks_now_ps(const struct acp_ranks *ranks)
{
    return ranks->backend->ops->time_ps(ranks->backend->ctx);
}

void acp_ranks_meet(struct acp_ranks *ranks)
{
    const struct workload *w = ranks->workload;
    unsigned char mine = 0, all[WORKLOAD_RANKS_MAX];
    w->gather(w->ctx, &mine, all, sizeof mine);
}

static int boot_gather(void *ctx, const void *mine, void *all, size_t bytes)
{
    const struct workload *w = ctx;
    w->gather(w->ctx, mine, all, bytes);
    return 0;
}

static void boot_abort(void *ctx, const char *text)
{
    const struct workload *w = ctx;
    w->give_up(w->ctx, text);
}

static int library_begin(struct acp_ranks *ranks)
{
    struct workload *w = ranks->workload;
    const struct acp_boot boot = {.ctx = w,
                                  .process = w->rank,
                                  .processes = w->ranks,
                                  .rank = w->rank,
                                  .device = w->verbs.device,
                                  .gather = boot_gather,
                                  .abort = boot_abort};
    return acp_boot_set(&boot) == 0 && acp_init(NULL, NULL) == 0 ? 0 : acp_ranks_fail(ranks, "acp_init");
}

static int memory_register(struct acp_ranks *ranks, size_t capacity, struct region *region, acp_atkey_t *key_out,
                           acp_ga_t *addresses_out)
{
    const struct workload *w = ranks->workload;
    int error = region_alloc(ranks->backend, capacity, region);
    if (error != 0) {
        return acp_ranks_fail(ranks, "memory");
    }
    *key_out = acp_register_memory(region_data(region), capacity, 0);
    if (*key_out == ACP_ATKEY_NULL) {
        return acp_ranks_fail(ranks, "acp_register_memory");
    }
    acp_ga_t mine = acp_query_ga(*key_out, region_data(region));
    w->gather(w->ctx, &mine, addresses_out, sizeof mine);
    return 0;
}

int acp_ranks_begin(struct acp_ranks *ranks, struct workload *workload, const char *program, size_t capacity)
{
    ranks->workload = workload;
    ranks->program = program;
    ranks->backend = &backend_current()->backend;
    int error = library_begin(ranks);
    if (error == 0) {
        error = memory_register(ranks, capacity, &ranks->source, &ranks->source_key, ranks->sources);
    }
    if (error == 0) {
        error = memory_register(ranks, capacity, &ranks->target, &ranks->target_key, ranks->targets);
    }
    return error;
}

int acp_ranks_end(struct acp_ranks *ranks)
{
    bool ended = acp_sync() == 0 && acp_unregister_memory(ranks->source_key) == 0 &&
                 acp_unregister_memory(ranks->target_key) == 0 && acp_finalize() == 0;
    if (!ended) {
        return acp_ranks_fail(ranks, "the library does not end");
    }
    region_free(ranks->backend, &ranks->source);
    region_free(ranks->backend, &ranks->target);
    return 0;
}
