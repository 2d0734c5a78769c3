// What arrives of messages that a board moves by DMA, or the processor by PIO, whatever happens to memories, boards and
// cables meanwhile: the node sends them to the peer one after the other, each to its own place and followed by a
// completion word. A DMA that ends with an error is a result, and the next one is started; one that does not end within
// TIMEOUT_NS is the last one. PIO always ends well, as nobody answers a store. At the end every byte at the peer is examined, and the program counts what it was told and what it finds (counts.def).
//
// The time is from the first start to the last end; the operations are those that ended well.
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"

#define TIMEOUT_NS 500000ull
#define SETTLE_NS  100000ull // after the last one: longer than any packet takes

struct delivery {
    struct workload *workload;
    const struct backend *backend;
    struct region source, destination; // of the node, of the peer
    struct backend_buffer words;       // of the peer, one for each message; of the node, its own DMA's
    struct backend_buffer transfers;
    uint64_t to_messages, to_words; // window addresses
    size_t bytes, message;          // of a descriptor; of a message
    uint32_t descriptors;
    uint32_t begun, completed;
    uint64_t took_ps;
};

struct letter {
    uint64_t messages, words, node; // bus addresses; of a GPU the offset in its window
    uint32_t begun;
};

static int give_up(const struct delivery *d, int error, const char *what)
{
    d->workload->fail(d->workload->ctx, "messages of %zu B: %s: %s", d->message, what, strerror(-error));
    return error;
}

static void count(const struct delivery *d, enum workload_count which, uint64_t more)
{
    d->workload->counts[which] += more;
}

// --- the node --------------------------------------------------------------------------------------------------------

static int message_prepare(struct delivery *d, uint32_t index, const struct peach2_notify *notify,
                           peach2_chain_t **chain_out)
{
    struct workload *w = d->workload;
    struct peach2_transfer *transfers = d->transfers.address;
    size_t offset = index * d->message;
    for (uint32_t i = 0; i < d->descriptors; i++) {
        transfers[i] = (struct peach2_transfer){.source = region_bus_address(&d->source) + offset + i * d->bytes,
                                                .destination = d->to_messages + offset + i * d->bytes,
                                                .bytes = (uint32_t)d->bytes};
    }
    *chain_out = NULL;
    if (w->method == WORKLOAD_REGISTER) {
        return peach2_dma_prepare(w->board, w->channel, transfers, notify);
    }
    enum peach2_chain_memory where = w->method == WORKLOAD_CHAIN_HOST ? PEACH2_CHAIN_HOST : PEACH2_CHAIN_BOARD;
    int error = peach2_chain_create(w->board, where, 0, transfers, d->descriptors, chain_out);
    return error == 0 ? peach2_chain_prepare(w->board, w->channel, *chain_out, notify) : error;
}

static bool is_pio(const struct delivery *d)
{
    return d->workload->method == WORKLOAD_PIO;
}

static void begun(struct delivery *d)
{
    d->begun++;
    count(d, WORKLOAD_COUNT_REQUESTS, 1);
}

static void ended(struct delivery *d, bool well)
{
    d->completed += well;
    count(d, well ? WORKLOAD_COUNT_COMPLETED : WORKLOAD_COUNT_FAILED, 1);
}

// false: it did not end.
static bool message_move(struct delivery *d, uint32_t index, int *error_out)
{
    struct workload *w = d->workload;
    const struct peach2_notify notify = {.local_address = d->words.bus_address,
                                         .remote_address = d->to_words + index * sizeof(uint64_t),
                                         .value = index + 1};
    peach2_chain_t *chain;
    unsigned dma_error = PEACH2_DMA_OK;
    int error = message_prepare(d, index, &notify, &chain);
    if (error == 0) {
        error = peach2_dma_start(w->board, w->channel);
    }
    if (error != 0) {
        *error_out = give_up(d, error, "starting");
        return false;
    }
    begun(d);
    error = peach2_wait_status(w->board, d->words.address, TIMEOUT_NS, NULL, &dma_error);
    ended(d, error == 0);
    peach2_chain_destroy(chain);
    *error_out = error == 0 || error == -EREMOTEIO || error == -ETIMEDOUT ? 0 : give_up(d, error, "waiting");
    return error != -ETIMEDOUT && *error_out == 0;
}

static bool message_store(struct delivery *d, uint32_t index, int *error_out)
{
    struct workload *w = d->workload;
    const uint64_t word = index + 1;
    size_t offset = index * d->message;
    begun(d);
    int error = peach2_pio_write(w->board, d->to_messages + offset, region_data(&d->source) + offset, d->message);
    if (error == 0) {
        error = peach2_pio_write(w->board, d->to_words + index * sizeof word, &word, sizeof word);
    }
    ended(d, error == 0);
    *error_out = error == 0 ? 0 : give_up(d, error, "storing");
    return error == 0;
}

static int node_run(struct delivery *d)
{
    const struct backend *backend = d->backend;
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    int error = 0;
    bool going = true;
    for (uint32_t i = 0; going && i < d->workload->iterations; i++) {
        going = is_pio(d) ? message_store(d, i, &error) : message_move(d, i, &error);
    }
    d->took_ps = backend->ops->time_ps(backend->ctx) - start_ps;
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, SETTLE_NS);
    return error;
}

// --- the peer --------------------------------------------------------------------------------------------------------

// Whether the message's completion word came and says that the message was sent well.
static int word_examine(struct delivery *d, uint32_t i, uint32_t begun, bool *told_out)
{
    volatile uint64_t *word = (volatile uint64_t *)d->words.address + i;
    unsigned dma_error = PEACH2_DMA_OK;
    uint32_t value = i + 1;
    bool came = *word != 0;
    int error = came ? 0 : -ENOENT;
    if (came && is_pio(d)) {
        value = (uint32_t)*word;
    } else if (came) {
        error = peach2_wait_status(d->workload->board, word, TIMEOUT_NS, &value, &dma_error);
    }
    *told_out = error == 0;
    if (value != i + 1 || (came && i >= begun)) {
        d->workload->fail(d->workload->ctx, "the word of message %u came with value %u", i, value);
        return -EBADMSG;
    }
    return 0;
}

static int message_examine(struct delivery *d, uint32_t i, uint32_t begun)
{
    size_t offset = i * d->message;
    bool told;
    long bad;
    int error = word_examine(d, i, begun, &told);
    if (error != 0) {
        return error;
    }
    count(d, WORKLOAD_COUNT_RECEIVED, told);
    if (region_holds(&d->destination, offset, d->message, i, &bad)) {
        count(d, WORKLOAD_COUNT_ARRIVED, 1);
        return 0;
    }
    region_invert(&d->source, 0, d->message, i);
    bool untouched = memcmp(region_data(&d->destination) + offset, region_data(&d->source), d->message) == 0;
    count(d, WORKLOAD_COUNT_TORN, !untouched);
    count(d, WORKLOAD_COUNT_MISSING, told);
    return 0;
}

static int peer_examine(struct delivery *d, uint32_t begun)
{
    int error = region_pull(d->backend, &d->destination);
    for (uint32_t i = 0; error == 0 && i < d->workload->iterations; i++) {
        error = message_examine(d, i, begun);
    }
    if (error == 0 && !region_is_guarded(&d->destination)) {
        d->workload->fail(d->workload->ctx, "bytes beside the messages changed");
        error = -EBADMSG;
    }
    return error;
}

// --- both ------------------------------------------------------------------------------------------------------------

static int memories_alloc(struct delivery *d)
{
    const struct workload *w = d->workload;
    const struct backend *backend = d->backend;
    bool peer = w->rank == 1;
    size_t capacity = d->message * w->iterations;
    int error = region_alloc_in(backend, peer ? REGION_HOST : w->source_gpu, peer ? d->message : capacity, &d->source);
    if (error == 0) {
        error = region_alloc_in(backend, peer ? w->destination_gpu : REGION_HOST, peer ? capacity : d->message,
                                &d->destination);
    }
    if (error == 0) {
        error = backend->ops->alloc_pinned(backend->ctx, w->iterations * sizeof(uint64_t), &d->words);
    }
    if (error == 0) {
        error =
            backend->ops->alloc_pinned(backend->ctx, d->descriptors * sizeof(struct peach2_transfer), &d->transfers);
    }
    return error == 0 ? 0 : give_up(d, error, "no memory for all messages");
}

static int memories_fill(struct delivery *d)
{
    const struct workload *w = d->workload;
    struct region *region = w->rank == 1 ? &d->destination : &d->source;
    region_guard(region);
    for (uint32_t i = 0; i < w->iterations; i++) {
        if (w->rank == 1) {
            region_invert(region, i * d->message, d->message, i);
        } else {
            region_fill(region, i * d->message, d->message, i);
        }
    }
    int error = region_push(d->backend, region);
    return error == 0 ? 0 : give_up(d, error, "filling the memory");
}

static int addresses_exchange(struct delivery *d)
{
    struct workload *w = d->workload;
    bool gpu = w->destination_gpu != WORKLOAD_HOST;
    const struct letter mine = {.messages =
                                    gpu ? region_window_offset(&d->destination) : region_bus_address(&d->destination),
                                .words = d->words.bus_address,
                                .node = w->node};
    struct letter peer;
    w->exchange(w->ctx, &mine, &peer, sizeof mine);
    if (w->rank == 1) {
        return 0;
    }
    uint32_t node = (uint32_t)peer.node;
    d->to_messages = gpu ? peach2_gpu_window_address(w->board, node, (uint32_t)w->destination_gpu, peer.messages)
                         : peach2_window_address(w->board, node, peer.messages);
    d->to_words = peach2_window_address(w->board, node, peer.words);
    return d->to_messages != 0 && d->to_words != 0 ? 0 : give_up(d, -ERANGE, "memory beyond the window");
}

static void point_report(const struct delivery *d)
{
    const struct workload *w = d->workload;
    uint64_t mean_ps = d->completed > 0 ? d->took_ps / d->completed : 0;
    const struct workload_point point = {.bytes = d->message,
                                         .descriptors = d->descriptors,
                                         .operations = d->completed,
                                         .total_ps = d->took_ps,
                                         .min_ps = mean_ps,
                                         .max_ps = mean_ps};
    w->report(w->ctx, &point);
}

int workload_delivery(struct workload *workload)
{
    struct workload *w = workload;
    struct delivery d = {.workload = w,
                         .backend = peach2_backend(w->board),
                         .bytes = (size_t)w->bytes[0],
                         .descriptors = (uint32_t)w->descriptors[0]};
    struct letter mine = {0}, peer;
    d.message = d.bytes * d.descriptors;
    int error = memories_alloc(&d);
    if (error == 0) {
        error = memories_fill(&d);
    }
    if (error == 0) {
        error = addresses_exchange(&d);
    }
    if (error == 0 && w->rank == 0) {
        error = node_run(&d);
    }
    if (error != 0) {
        return error;
    }
    mine.begun = d.begun;
    w->exchange(w->ctx, &mine, &peer, sizeof mine);
    error = w->rank == 1 ? peer_examine(&d, peer.begun) : 0;
    if (error == 0 && w->rank == 0) {
        point_report(&d);
    }
    return error;
}
