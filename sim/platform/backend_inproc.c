#include "sim/platform/backend_inproc.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/kernel/cause.h"
#include "sim/platform/backend_gpu.h"

enum { PAGE_BYTES = 4096 };

// Pinned memory is allocated in pages.
static uint64_t page_round(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static int alloc_pinned(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    struct plat_backend_inproc *b = ctx;
    uint64_t bus_address;
    switch (host_memory_alloc(b->memory, bytes, &bus_address)) {
    case SIM_OK:
        break;
    case SIM_ERR_INVALID:
        return -EINVAL;
    case SIM_ERR_NO_MEMORY:
    case SIM_ERR_NOT_FOUND:
    case SIM_ERR_EXISTS:
    case SIM_ERR_BUSY:
    case SIM_ERR_IO:
    case SIM_ERR_RANGE:
    case SIM_ERR_FAULT:
    case SIM_ERR_TIMEOUT:
    case SIM_ERR_UNSUPPORTED:
        return -ENOMEM;
    }
    b->allocated_bytes += page_round(bytes);
    *buffer_out = (struct backend_buffer){host_memory_at(b->memory, bus_address), bus_address, bytes};
    return 0;
}

static void free_pinned(void *ctx, struct backend_buffer *buffer)
{
    struct plat_backend_inproc *b = ctx;
    host_memory_free(b->memory, buffer->bus_address);
    b->allocated_bytes -= page_round(buffer->bytes);
    *buffer = (struct backend_buffer){0};
}

static int memory_check(void *ctx, const void *address, size_t bytes, bool writable)
{
    (void)ctx;
    return plat_process_memory_exists(getpid(), (uintptr_t)address, bytes, writable) ? 0 : -EFAULT;
}

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    struct plat_backend_inproc *b = ctx;
    return b->bars[bar].bytes;
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    struct plat_backend_inproc *b = ctx;
    return b->bars[bar].base;
}

static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    struct plat_backend_inproc *b = ctx;
    host_core_store_wc(plat_backend_core(b), bar_bus_address(ctx, bar) + offset, data, bytes);
}

static void fence(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    host_core_fence(plat_backend_core(b));
}

static void write_uncached(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes)
{
    struct plat_backend_inproc *b = ctx;
    host_core_store_uc(plat_backend_core(b), bar_bus_address(ctx, bar) + offset, value, bytes);
}

static int read_uncached(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    struct plat_backend_inproc *b = ctx;
    return host_core_load_uc(plat_backend_core(b), bar_bus_address(ctx, bar) + offset, bytes, value_out) ? 0 : -EIO;
}

static int read_combined(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes)
{
    struct plat_backend_inproc *b = ctx;
    return host_core_load_wc(plat_backend_core(b), bar_bus_address(ctx, bar) + offset, data, bytes) ? 0 : -EIO;
}

// The bus address of a word in a pinned buffer, or in memory of the program that is pinned page by page.
static bool bus_address_of(const struct plat_backend_inproc *b, const volatile void *word, uint64_t *bus_out)
{
    return host_memory_bus_address(b->memory, (const void *)(uintptr_t)word, bus_out) ||
           host_memory_pinned_address(b->memory, &b->owner, (uintptr_t)word, bus_out);
}

static int wait_word(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns)
{
    struct plat_backend_inproc *b = ctx;
    uint64_t bus_address;
    if (!bus_address_of(b, word, &bus_address) || bus_address % sizeof *word != 0) {
        return -EINVAL;
    }
    uint64_t deadline_ps = timeout_ns == 0 ? SIM_NEVER_PS : sim_now_ps(b->sim) + timeout_ns * SIM_PS_PER_NS;
    return host_core_poll(plat_backend_core(b), bus_address, mask, value, deadline_ps) ? 0 : -ETIMEDOUT;
}

static void polled(void *ctx, const volatile void *word, bool found)
{
    struct plat_backend_inproc *b = ctx;
    uint64_t bus_address;
    if (bus_address_of(b, word, &bus_address)) {
        host_core_polled(plat_backend_core(b), bus_address, found, UINT64_MAX);
    }
}

static uint64_t time_ps(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    return host_core_timestamp_ps(plat_backend_core(b));
}

static uint64_t deadline_ps(void *ctx)
{
    const struct plat_backend_inproc *b = ctx;
    return sim_now_ps(b->sim);
}

static const struct sim_work works[] = {
    [BACKEND_COST_CALL] = {"library", "calls", false},
    [BACKEND_COST_LOAD_STORE] = {"library", "cached loads and stores", false},
    [BACKEND_COST_DEVICE_LINE] = {"library", "lines that a device wrote or read last", false},
    [BACKEND_COST_LOCK] = {"library", "locks", false},
    [BACKEND_COST_COPY] = {"library", "copies in host memory", false},
    [BACKEND_COST_INTERRUPT] = {"library", "interrupt", false},
    [BACKEND_COST_TIME] = {"library", "declared time", false},
};

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    struct plat_backend_inproc *b = ctx;
    host_core_t *core = plat_backend_core(b);
    const struct host_core_config *config = host_core_config(core);
    switch (kind) {
    case BACKEND_COST_CALL:
        host_core_spend(core, amount * config->call_ps, &works[kind]);
        break;
    case BACKEND_COST_LOAD_STORE:
        host_core_spend(core, amount * config->load_ps, &works[kind]);
        break;
    case BACKEND_COST_DEVICE_LINE:
        host_core_spend(core, amount * config->device_line_ps, &works[kind]);
        break;
    case BACKEND_COST_LOCK:
        host_core_spend(core, amount * config->lock_ps, &works[kind]);
        break;
    case BACKEND_COST_COPY:
        host_core_spend(core, amount * SIM_PS_PER_US / config->copy_bytes_per_us, &works[kind]);
        break;
    case BACKEND_COST_INTERRUPT:
        host_core_spend(core, amount * b->interrupt_ps, &works[kind]);
        break;
    case BACKEND_COST_TIME:
        host_core_spend(core, amount * SIM_PS_PER_NS, &works[kind]);
        break;
    }
}

static const struct backend_ops inproc_ops = {
    .thread = &plat_backend_thread_ops,
    .gpu = &plat_backend_gpu_ops,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .memory_check = memory_check,
    .bar_bytes = bar_bytes,
    .bar_bus_address = bar_bus_address,
    .write_combined = write_combined,
    .fence = fence,
    .write = write_uncached,
    .read = read_uncached,
    .read_combined = read_combined,
    .wait_word = wait_word,
    .polled = polled,
    .time_ps = time_ps,
    .deadline_ps = deadline_ps,
    .cost = cost,
};

struct backend plat_backend_inproc(struct plat_backend_inproc *ctx)
{
    ctx->ops = inproc_ops;
    ctx->owner = (struct host_owner){.ops = &plat_process_memory_ops};
    ctx->ops.journal = ctx->observe == NULL ? NULL : &plat_backend_journal_ops;
    ctx->ops.hca_command = ctx->hca == NULL ? NULL : plat_backend_hca_command;
    return (struct backend){&ctx->ops, ctx};
}

// --- processes -----------------------------------------------------------------------------------------------------

// The caller is known only by the running stack, and backend_current takes no context. So these are the only global
// variables: the entered backends of the one simulation that exists, as a list, and by the address of their thread's
// name.
#define BUCKETS 1024u
static struct plat_backend_inproc *entered, *by_thread[BUCKETS];

static struct plat_backend_inproc **bucket_of(const char *thread)
{
    return &by_thread[(uintptr_t)thread / sizeof(max_align_t) % BUCKETS];
}

void plat_backend_enter(struct plat_backend_inproc *ctx, struct peach2_board_handle *board)
{
    ctx->process = (struct backend_process){.backend = plat_backend_inproc(ctx), .board = board, .number = ctx->number};
    ctx->thread = sim_thread_name(ctx->sim);
    if (ctx->observe != NULL) {
        ctx->observed = observe_process_begin(ctx->observe, &(struct observe_identity){.node = ctx->node,
                                                                                      .number = ctx->number,
                                                                                      .name = ctx->thread,
                                                                                      .began_ps = sim_now_ps(ctx->sim),
                                                                                      .tag = ctx});
    }
    ctx->next = entered;
    ctx->before = NULL;
    if (entered != NULL) {
        entered->before = ctx;
    }
    entered = ctx;
    ctx->next_in_bucket = *bucket_of(ctx->thread);
    *bucket_of(ctx->thread) = ctx;
}

// The remote address of a request is a pointer of its peer.
bool plat_backend_bus_address(const struct plat_backend_inproc *ctx, uint64_t pointer, uint64_t *address_out)
{
    const void *at = (const void *)(uintptr_t)pointer; // NOLINT(performance-no-int-to-ptr)
    bool found = bus_address_of(ctx, at, address_out);
    for (const struct plat_backend_inproc *other = entered; other != NULL && !found; other = other->next) {
        found = bus_address_of(other, at, address_out);
    }
    return found;
}

void plat_backend_end(struct plat_backend_inproc *ctx)
{
    host_memory_owner_gone(ctx->memory, &ctx->owner);
    if (ctx->observed != NULL) {
        observe_process_end(ctx->observed, sim_now_ps(ctx->sim));
        ctx->observed = NULL;
    }
}

void plat_backend_leave(struct plat_backend_inproc *ctx)
{
    struct plat_backend_inproc **link = bucket_of(ctx->thread);
    while (*link != NULL && *link != ctx) {
        link = &(*link)->next_in_bucket;
    }
    if (*link == NULL) {
        return;
    }
    *link = ctx->next_in_bucket;
    *(ctx->before != NULL ? &ctx->before->next : &entered) = ctx->next;
    if (ctx->next != NULL) {
        ctx->next->before = ctx->before;
    }
    for (unsigned i = 0; i < BACKEND_LIBRARIES; i++) {
        struct backend_library *library = &ctx->process.libraries[i];
        if (library->release != NULL) {
            library->release(library->state);
        }
    }
    plat_backend_end(ctx);
    while (ctx->pinned != NULL) {
        struct plat_pinned_region *region = ctx->pinned;
        ctx->pinned = region->next;
        host_memory_unpin(ctx->memory, region->pages, region->count);
        free(region);
    }
    ctx->process = (struct backend_process){0};
    plat_backend_threads_fini(ctx);
}

// Threads are compared by the addresses of their names: each has its own, even if the texts are equal. A thread of a
// library is looked for in every backend.
struct backend_process *backend_current(void)
{
    const char *caller = entered != NULL ? sim_thread_name(entered->sim) : NULL;
    for (struct plat_backend_inproc *ctx = *bucket_of(caller); ctx != NULL; ctx = ctx->next_in_bucket) {
        if (ctx->thread == caller) {
            return &ctx->process;
        }
    }
    for (struct plat_backend_inproc *ctx = entered; ctx != NULL; ctx = ctx->next) {
        if (plat_backend_helper(ctx) != NULL) {
            return &ctx->process;
        }
    }
    return NULL;
}
