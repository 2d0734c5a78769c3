// A stream to the next node: every rank sends `iterations` messages to the next rank, one after the other, each to its
// own address and followed by a completion word. No rank waits for its receiver, so the program also ends if a cable on
// the path is pulled.
//
// Rank 0 reports its own stream: the operations are the messages whose completion word arrived, each with the mean time
// of sending one. What arrived must be complete, and nothing may arrive after the first message that did not, because
// posted writes keep their order.
#include "scenarios/workloads/workload.h"

#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"

// Limit for a completion word after everything was sent, and for the own DMA; longer than any message takes.
#define TIMEOUT_NS 1000000ull

struct addresses {
    uint64_t messages, words; // bus addresses of the sending node
};

struct stream {
    struct workload *workload;
    const struct backend *backend;
    struct region send, receive;
    struct backend_buffer transfers; // of one message
    struct backend_buffer words;     // for received messages, and one for the own DMA
    uint64_t to_messages, to_words;  // window addresses
    // of the current point
    uint32_t point;
    size_t bytes, message; // of a descriptor; of a message
    uint32_t descriptors;
};

static int give_up(const struct stream *s, int error, const char *what)
{
    s->workload->fail(s->workload->ctx, "stream of %zu B: %s: %s", s->message, what, strerror(-error));
    return error;
}

static uint32_t seed_of(const struct stream *s, uint32_t from, uint32_t index)
{
    return (s->point * WORKLOAD_RANKS_MAX + from) * s->workload->iterations + index;
}

static uint32_t rank_before(const struct workload *w)
{
    return (w->rank + w->ranks - 1) % w->ranks;
}

// --- sending -------------------------------------------------------------------------------------------------------

static int message_prepare(struct stream *s, uint32_t index, const struct peach2_notify *notify,
                           peach2_chain_t **chain_out)
{
    struct workload *w = s->workload;
    struct peach2_transfer *transfers = s->transfers.address;
    size_t offset = index * s->message;
    for (uint32_t i = 0; i < s->descriptors; i++) {
        transfers[i] = (struct peach2_transfer){.source = region_bus_address(&s->send) + offset + i * s->bytes,
                                                .destination = s->to_messages + offset + i * s->bytes,
                                                .bytes = (uint32_t)s->bytes};
    }
    *chain_out = NULL;
    if (w->method == WORKLOAD_REGISTER) {
        return peach2_dma_prepare(w->board, w->channel, transfers, notify);
    }
    enum peach2_chain_memory where = w->method == WORKLOAD_CHAIN_HOST ? PEACH2_CHAIN_HOST : PEACH2_CHAIN_BOARD;
    int error = peach2_chain_create(w->board, where, 0, transfers, s->descriptors, chain_out);
    return error == 0 ? peach2_chain_prepare(w->board, w->channel, *chain_out, notify) : error;
}

static int message_send(struct stream *s, uint32_t index)
{
    struct workload *w = s->workload;
    const size_t own = w->iterations * sizeof(uint64_t); // after the words of messages
    const struct peach2_notify notify = {.local_address = s->words.bus_address + own,
                                         .remote_address = s->to_words + index * sizeof(uint64_t),
                                         .value = index + 1};
    peach2_chain_t *chain;
    unsigned dma_error = PEACH2_DMA_OK;
    int error = message_prepare(s, index, &notify, &chain);
    if (error == 0) {
        error = peach2_dma_start(w->board, w->channel);
    }
    if (error == 0) {
        volatile uint64_t *word = (volatile uint64_t *)s->words.address + w->iterations;
        w->counts[WORKLOAD_COUNT_REQUESTS]++;
        error = peach2_wait_status(w->board, word, TIMEOUT_NS, NULL, &dma_error);
    }
    peach2_chain_destroy(chain);
    w->counts[WORKLOAD_COUNT_COMPLETED] += error == 0;
    if (error != 0) {
        return give_up(s, error, error == -EREMOTEIO ? peach2_dma_error_name(dma_error) : "sending");
    }
    return 0;
}

static int all_send(struct stream *s, uint64_t *total_ps_out)
{
    int error = 0;
    uint64_t start_ps = s->backend->ops->time_ps(s->backend->ctx);
    for (uint32_t i = 0; error == 0 && i < s->workload->iterations; i++) {
        error = message_send(s, i);
    }
    *total_ps_out = s->backend->ops->time_ps(s->backend->ctx) - start_ps;
    return error;
}

// --- receiving -----------------------------------------------------------------------------------------------------

static int bad_data(const struct stream *s, uint32_t index, const char *what)
{
    struct workload *w = s->workload;
    w->fail(w->ctx, "stream of %zu B: message %u from rank %u to rank %u %s", s->message, index, rank_before(w),
            w->rank, what);
    return -EBADMSG;
}

static int message_receive(struct stream *s, uint32_t index)
{
    unsigned dma_error = PEACH2_DMA_OK;
    uint32_t value = 0;
    volatile uint64_t *word = (volatile uint64_t *)s->words.address + index;
    int error = peach2_wait_status(s->workload->board, word, TIMEOUT_NS, &value, &dma_error);
    if (error == -ETIMEDOUT) {
        return error;
    }
    long bad;
    if (error != 0 || value != index + 1) {
        return bad_data(s, index, "has the completion word of another");
    }
    if (!region_holds(&s->receive, index * s->message, s->message, seed_of(s, rank_before(s->workload), index), &bad)) {
        return bad_data(s, index, "is complete, and its data is wrong");
    }
    return 0;
}

// The own messages have left: their region is used for the contents that the receive region had before.
static bool is_untouched(const struct stream *s, uint32_t index)
{
    region_invert(&s->send, 0, s->message, seed_of(s, rank_before(s->workload), index));
    return memcmp(region_data(&s->receive) + index * s->message, region_data(&s->send), s->message) == 0;
}

// Of the messages after the first `arrived` ones, the first may have arrived in part, the others not at all.
static int rest_check(struct stream *s, uint32_t arrived)
{
    const volatile uint64_t *words = s->words.address;
    for (uint32_t i = 0; i < s->workload->iterations; i++) {
        if (words[i] != 0) {
            return bad_data(s, i, i < arrived ? "was reported complete twice" : "arrived after one that did not");
        }
        bool untouched = i < arrived || is_untouched(s, i);
        s->workload->counts[WORKLOAD_COUNT_TORN] += !untouched;
        if (i > arrived && !untouched) {
            return bad_data(s, i, "arrived in part after one that did not arrive");
        }
    }
    return region_is_guarded(&s->receive) ? 0 : bad_data(s, arrived, "was written beside its target");
}

static int all_receive(struct stream *s, uint32_t *arrived_out)
{
    int error = 0;
    uint32_t arrived = 0;
    while (error == 0 && arrived < s->workload->iterations) {
        error = message_receive(s, arrived);
        arrived += error == 0;
    }
    *arrived_out = arrived;
    return error == -ETIMEDOUT ? 0 : error;
}

// --- points --------------------------------------------------------------------------------------------------------

static void point_prepare(struct stream *s)
{
    const struct workload *w = s->workload;
    for (uint32_t i = 0; i < w->iterations; i++) {
        region_fill(&s->send, i * s->message, s->message, seed_of(s, w->rank, i));
        region_invert(&s->receive, i * s->message, s->message, seed_of(s, rank_before(w), i));
    }
}

static int point_run(struct stream *s)
{
    struct workload *w = s->workload;
    struct workload_point point = {.bytes = s->message, .descriptors = s->descriptors};
    uint32_t arrived = 0, all[WORKLOAD_RANKS_MAX];
    point_prepare(s);
    w->gather(w->ctx, &arrived, all, sizeof arrived); // no rank sends before all ranks are prepared
    int error = all_send(s, &point.total_ps);
    if (error == 0) {
        error = all_receive(s, &arrived);
    }
    if (error != 0) {
        return error;
    }
    w->gather(w->ctx, &arrived, all, sizeof arrived);
    w->counts[WORKLOAD_COUNT_RECEIVED] += arrived; // each of them was found to be whole
    w->counts[WORKLOAD_COUNT_ARRIVED] += arrived;
    error = rest_check(s, arrived);
    if (error == 0 && w->rank == 0) {
        point.operations = all[1 % w->ranks];
        point.min_ps = point.max_ps = point.total_ps / w->iterations;
        point.total_ps = point.total_ps * point.operations / w->iterations; // the share of those that arrived
        w->report(w->ctx, &point);
    }
    return error;
}

static int points_run(struct stream *s)
{
    const struct workload *w = s->workload;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->bytes_count; i++) {
        for (uint32_t k = 0; error == 0 && k < w->descriptors_count; k++) {
            s->bytes = w->bytes[i];
            s->descriptors = (uint32_t)w->descriptors[k];
            s->message = s->bytes * s->descriptors;
            error = point_run(s);
            s->point++;
        }
    }
    return error;
}

static int addresses_exchange(struct stream *s)
{
    struct workload *w = s->workload;
    struct letter {
        struct addresses addresses;
        uint64_t node;
    } mine = {{region_bus_address(&s->receive), s->words.bus_address}, w->node}, all[WORKLOAD_RANKS_MAX];
    w->gather(w->ctx, &mine, all, sizeof mine);
    const struct letter *next = &all[(w->rank + 1) % w->ranks];
    s->to_messages = peach2_window_address(w->board, (uint32_t)next->node, next->addresses.messages);
    s->to_words = peach2_window_address(w->board, (uint32_t)next->node, next->addresses.words);
    return s->to_messages != 0 && s->to_words != 0 ? 0 : -ERANGE;
}

int workload_stream(struct workload *workload)
{
    struct workload *w = workload;
    struct stream s = {.workload = w, .backend = peach2_backend(w->board)};
    uint64_t descriptors = region_largest(w->descriptors, w->descriptors_count);
    size_t capacity = region_largest(w->bytes, w->bytes_count) * descriptors * w->iterations;
    int error = region_alloc(s.backend, capacity, &s.send);
    if (error == 0) {
        error = region_alloc(s.backend, capacity, &s.receive);
    }
    if (error == 0) {
        error = s.backend->ops->alloc_pinned(s.backend->ctx, (w->iterations + 1) * sizeof(uint64_t), &s.words);
    }
    if (error == 0) {
        error =
            s.backend->ops->alloc_pinned(s.backend->ctx, descriptors * sizeof(struct peach2_transfer), &s.transfers);
    }
    if (error != 0) {
        return give_up(&s, error, "no pinned memory for all messages");
    }
    region_guard(&s.receive);
    error = addresses_exchange(&s);
    return error == 0 ? points_run(&s) : give_up(&s, error, "memory beyond the window");
}
