// "backend WHAT" uses operations of its backend and prints what came of it:
// "costs": the ps of one of each cost, of a million of the bytes;
// "alarm": the us of a wait of 10 us during which an alarm is due every 4 us, and the alarms;
// "library", where computing costs time: does what the program computes cost as much, and a call of a library less?
// "settle": the attach calls for a store to each GPU's window, and for nothing;
// "many" and "long" on two nodes: node 0 makes many small stores to node 1's memory, or four long stores that begin
// within a line, the last one with the words; node 1 prints how many words are wrong.
// The rest is in backend_gpu.c, backend_helper.c, backend_journal.c and backend_signals.c.
#include "backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "verbs-shim/peach2/peach2_driver.h"

enum {
    BUFFER_BYTES = 65536,
    STORES = 600,
    LONG_WORDS = 5000,
    LONG_STORES = 4,
    ALARMS_MAX = 20,
    COMPUTED_NS = 100000000
};

// --- time -----------------------------------------------------------------------------------------------------------

static int costs(const struct backend *backend)
{
    static const enum backend_cost kinds[] = {BACKEND_COST_CALL, BACKEND_COST_LOAD_STORE, BACKEND_COST_DEVICE_LINE,
                                              BACKEND_COST_LOCK, BACKEND_COST_COPY,       BACKEND_COST_INTERRUPT,
                                              BACKEND_COST_TIME};
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t begin_ps = attach_now_ps();
        backend->ops->cost(backend->ctx, kinds[i], kinds[i] == BACKEND_COST_COPY ? 1000000 : 1);
        printf("%llu\n", (unsigned long long)(attach_now_ps() - begin_ps));
    }
    return 0;
}

static unsigned alarms;

static void due(void)
{
    if (++alarms < ALARMS_MAX) {
        attach_alarm(attach_now_ps() + 4 * (uint64_t)BACKEND_US_PS, due);
    }
}

static int alarm_run(const struct backend *backend)
{
    struct backend_buffer buffer;
    if (backend->ops->alloc_pinned(backend->ctx, BUFFER_BYTES, &buffer) != 0) {
        return 3;
    }
    uint64_t begin_ps = attach_now_ps();
    attach_alarm(begin_ps + 4 * (uint64_t)BACKEND_US_PS, due);
    int status = backend->ops->wait_word(backend->ctx, buffer.address, UINT64_MAX, 1, 10000);
    attach_alarm(ATTACH_NEVER_PS, due);
    printf("%u %u\n", (unsigned)((attach_now_ps() - begin_ps) / BACKEND_US_PS), alarms);
    return status != -ETIMEDOUT;
}

static uint64_t processor_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int library(const struct backend *backend)
{
    uint64_t begin_ns = processor_ns(), begin_ps = attach_now_ps();
    (void)backend;
    while (processor_ns() - begin_ns < COMPUTED_NS) {
    }
    uint64_t computed_ps = attach_now_ps() - begin_ps;
    attach_library_enter();
    (void)attach_wait(0, attach_now_ps() + BACKEND_US_PS);
    attach_library_leave();
    uint64_t call_ps = attach_now_ps() - begin_ps - computed_ps;
    printf("%d %d\n", computed_ps >= (uint64_t)COMPUTED_NS * 1000, call_ps < computed_ps);
    return 0;
}

// --- stores ---------------------------------------------------------------------------------------------------------

static int settle(const struct backend *backend)
{
    const uint64_t value = 1;
    for (unsigned gpu = 0; gpu < backend->ops->gpu->count(backend->ctx); gpu++) {
        uint64_t address, offset, bus_address;
        if (backend->ops->gpu->alloc(backend->ctx, gpu, BUFFER_BYTES, &address) != 0 ||
            backend->ops->gpu->pin(backend->ctx, gpu, address, BUFFER_BYTES, &offset, &bus_address) != 0) {
            return 3;
        }
        enum backend_bar window = (enum backend_bar)(BACKEND_BAR_GPU0 + gpu);
        backend->ops->write_combined(backend->ctx, window, offset, &value, sizeof value);
        unsigned before = attach_calls();
        attach_settle();
        unsigned between = attach_calls();
        attach_settle();
        printf("%u %u\n", between - before, attach_calls() - between);
    }
    return 0;
}

static int words_check(const struct backend *backend, const struct backend_buffer *buffer, unsigned words)
{
    const uint64_t *list = (const uint64_t *)buffer->address + 1;
    int status = backend->ops->wait_word(backend->ctx, list + words - 1, UINT64_MAX, words, 1000000000);
    unsigned wrong = 0;
    for (unsigned i = 0; i < words; i++) {
        wrong += list[i] != i + 1;
    }
    printf("%u\n", wrong);
    return status;
}

// Both sides' first buffers have the same address.
static int store(struct backend_process *process, unsigned words, unsigned at_once)
{
    const struct backend *backend = &process->backend;
    static uint64_t list[LONG_WORDS], zeros[LONG_WORDS];
    struct backend_buffer buffer;
    if (backend->ops->alloc_pinned(backend->ctx, BUFFER_BYTES, &buffer) != 0) {
        return 3;
    }
    if (attach_environment()->node_index == 1) {
        return words_check(backend, &buffer, words);
    }
    uint64_t offset = peach2_window_address(process->board, 1, buffer.bus_address + sizeof list[0]) -
                      backend->ops->bar_bus_address(backend->ctx, BACKEND_BAR_WINDOW);
    for (unsigned i = 0; i < words; i++) {
        list[i] = i + 1;
    }
    (void)attach_wait(0, attach_now_ps() + 200 * (uint64_t)BACKEND_US_PS); // the other side has begun
    for (unsigned i = 1; i < LONG_STORES && at_once == words; i++) {
        backend->ops->write_combined(backend->ctx, BACKEND_BAR_WINDOW, offset, zeros, sizeof zeros);
    }
    for (unsigned i = 0; i < words; i += at_once) {
        backend->ops->write_combined(backend->ctx, BACKEND_BAR_WINDOW, offset + i * sizeof list[0], &list[i],
                                     at_once * sizeof list[0]);
    }
    backend->ops->fence(backend->ctx);
    return 0;
}

int main(int argc, char **argv)
{
    struct backend_process *process = backend_current();
    static const struct {
        const char *name;
        int (*run)(const struct backend *backend);
    } parts[] = {{"costs", costs},
                 {"alarm", alarm_run},
                 {"settle", settle},
                 {"kernels", backend_kernels},
                 {"helper", backend_helper},
                 {"records", backend_records},
                 {"regions", backend_regions},
                 {"watch", backend_watch},
                 {"library", library},
                 {"signals", backend_signals}};
    if (process == NULL || argc < 2) {
        return 3;
    }
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            return parts[i].run(&process->backend);
        }
    }
    return strcmp(argv[1], "many") == 0 ? store(process, STORES, 1) : store(process, LONG_WORDS, LONG_WORDS);
}
