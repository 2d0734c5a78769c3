// Ping-pong between two nodes, as hanawa2013 4.2 measures it.
//
// PIO: each rank stores a message into the other's receive buffer through the window and polls the last word of its own
// receive buffer, in GPU memory by uncached loads. DMA: the registers, or the chain, are prepared once for each size; a
// turn is one write that starts the channel. When the message is written, the board notifies the other rank through its
// ack word; that rank polls the word and resets it.
//
// A block of round trips is timed as a whole, so that reading the clock disturbs nothing; an operation is half a round
// trip. After each point every received byte is checked, and the bytes around it.
#include "scenarios/workloads/workload.h"

#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"

// How long to wait before asking the own board whether its DMA failed; in that case the other rank was not notified and
// never answers. Longer than any message takes.
#define TIMEOUT_NS 10000000ull

struct addresses {
    uint64_t receive, ack; // bus addresses of the sending node; in a GPU's memory: offset in its window
};

struct pingpong {
    struct workload *workload;
    const struct backend *backend;
    struct region send, receive;
    struct region scratch; // the chain, as transfers
    struct backend_buffer ack;
    uint64_t peer_receive, peer_ack; // window addresses
    // of the current point
    uint32_t point;
    uint64_t bytes, descriptors;
    size_t message;         // bytes of all descriptors
    size_t offset;          // of the message in its region
    uint64_t expected_word; // the last word of the pattern that should arrive
    peach2_chain_t *chain;
};

static bool is_pio(const struct pingpong *p)
{
    return p->workload->method == WORKLOAD_PIO;
}

static int give_up(const struct pingpong *p, int error, const char *what)
{
    p->workload->fail(p->workload->ctx, "ping-pong of %llu B: %s: %s", (unsigned long long)p->message, what,
                      strerror(-error));
    return error;
}

static uint32_t seed_of(const struct pingpong *p, uint32_t rank)
{
    return 2 * p->point + rank;
}

// --- one message ---------------------------------------------------------------------------------------------------

// The last word contains the turn: 8 bytes, or 4 if the message is shorter.
static size_t word_bytes(const struct pingpong *p)
{
    return p->message < 8 ? 4 : 8;
}

static uint8_t *last_word(const struct pingpong *p, const struct region *region)
{
    return region_data(region) + p->offset + p->message - word_bytes(p);
}

// Mixes the turn into the pattern's last word, or removes it again.
static void turn_mix(const struct pingpong *p, const struct region *region, uint64_t turn)
{
    uint64_t word = 0;
    memcpy(&word, last_word(p, region), word_bytes(p));
    word ^= turn;
    memcpy(last_word(p, region), &word, word_bytes(p));
}

static int message_send(struct pingpong *p, uint64_t turn)
{
    struct workload *w = p->workload;
    if (!is_pio(p)) {
        return peach2_dma_start(w->board, w->channel);
    }
    turn_mix(p, &p->send, turn);
    int error = peach2_pio_write(w->board, p->peer_receive + p->offset, region_data(&p->send) + p->offset, p->message);
    turn_mix(p, &p->send, turn);
    return error == 0 ? 0 : give_up(p, error, "writing by PIO");
}

static int ack_wait(struct pingpong *p)
{
    struct workload *w = p->workload;
    volatile uint64_t *ack = p->ack.address;
    uint64_t timeout_ns = TIMEOUT_NS;
    uint32_t point = 0;
    unsigned dma_error = PEACH2_DMA_OK;
    int error;
    while ((error = peach2_wait_status(w->board, ack, timeout_ns, &point, &dma_error)) == -ETIMEDOUT) {
        error = peach2_dma_poll(w->board, w->channel, &dma_error);
        if (error == -EREMOTEIO) {
            break;
        }
        if (error == 0) {
            timeout_ns = 0;
        } else if (error != -EAGAIN) {
            return give_up(p, error, "reading the board's status");
        }
    }
    if (error == -EREMOTEIO) {
        w->fail(w->ctx, "ping-pong of %llu B: the DMA failed: %s", (unsigned long long)p->message,
                peach2_dma_error_name(dma_error));
        return error;
    }
    if (error == 0 && point != p->point) {
        w->fail(w->ctx, "ping-pong of %llu B: the completion of point %u came instead of that of point %u",
                (unsigned long long)p->message, point, p->point);
        return -EPROTO;
    }
    return error;
}

// Polls the word in the GPU's memory through its window.
static int window_wait(struct pingpong *p, uint64_t word)
{
    const struct backend *backend = p->backend;
    enum backend_bar bar = BACKEND_BAR_GPU0 + (unsigned)p->workload->destination_gpu;
    uint64_t offset = region_window_offset(&p->receive) + p->offset + p->message - word_bytes(p);
    uint64_t start_ps = backend->ops->time_ps(backend->ctx), value;
    do {
        int error = backend->ops->read(backend->ctx, bar, offset, (unsigned)word_bytes(p), &value);
        if (error != 0) {
            return give_up(p, error, "polling GPU memory");
        }
        if (backend->ops->time_ps(backend->ctx) - start_ps > TIMEOUT_NS * 1000) {
            return give_up(p, -ETIMEDOUT, "polling GPU memory");
        }
    } while (value != word);
    return 0;
}

static int message_wait(struct pingpong *p, uint64_t turn)
{
    if (!is_pio(p)) {
        return ack_wait(p);
    }
    uint8_t *end = region_data(&p->receive) + p->offset + p->message;
    uint64_t word = p->expected_word ^ turn;
    bool half = word_bytes(p) == 4; // the upper half of the word that a rank can poll
    if (p->workload->destination_gpu >= 0) {
        return window_wait(p, half ? (uint32_t)word : word);
    }
    return p->backend->ops->wait_word(p->backend->ctx, (volatile uint64_t *)(void *)(end - 8),
                                      half ? UINT64_C(0xffffffff) << 32 : UINT64_MAX, half ? word << 32 : word, 0);
}

// --- one point -----------------------------------------------------------------------------------------------------

static int chain_prepare(struct pingpong *p, const struct peach2_notify *notify)
{
    struct workload *w = p->workload;
    struct peach2_transfer *transfers = (void *)region_data(&p->scratch);
    for (uint64_t i = 0; i < p->descriptors; i++) {
        transfers[i] = (struct peach2_transfer){
            .source = region_bus_address(&p->send) + i * p->bytes,
            .destination = p->peer_receive + i * p->bytes,
            .bytes = (uint32_t)p->bytes,
        };
    }
    enum peach2_chain_memory memory = w->method == WORKLOAD_CHAIN_BOARD ? PEACH2_CHAIN_BOARD : PEACH2_CHAIN_HOST;
    int error = peach2_chain_create(w->board, memory, 0, transfers, (uint32_t)p->descriptors, &p->chain);
    if (error != 0) {
        return give_up(p, error, "building the chain");
    }
    error = peach2_chain_prepare(w->board, w->channel, p->chain, notify);
    return error == 0 ? 0 : give_up(p, error, "preparing the chain");
}

static int dma_prepare(struct pingpong *p)
{
    struct workload *w = p->workload;
    const struct peach2_notify notify = {.remote_address = p->peer_ack, .value = p->point};
    if (w->method != WORKLOAD_REGISTER) {
        return chain_prepare(p, &notify);
    }
    const struct peach2_transfer transfer = {
        .source = region_bus_address(&p->send), .destination = p->peer_receive, .bytes = (uint32_t)p->message};
    int error = peach2_dma_prepare(w->board, w->channel, &transfer, &notify);
    return error == 0 ? 0 : give_up(p, error, "preparing the registers");
}

static int point_prepare(struct pingpong *p)
{
    uint32_t rank = p->workload->rank;
    p->message = (size_t)(p->bytes * p->descriptors);
    // The message ends at a word boundary, because a rank polls whole words.
    p->offset = is_pio(p) ? (8 - p->message % 8) % 8 : 0;
    region_fill(&p->send, p->offset, p->message, seed_of(p, rank));
    region_fill(&p->receive, p->offset, p->message, seed_of(p, 1 - rank));
    p->expected_word = 0;
    if (is_pio(p)) {
        memcpy(&p->expected_word, last_word(p, &p->receive), word_bytes(p));
    }
    region_expect(&p->receive, p->offset, p->message, seed_of(p, 1 - rank));
    int error = region_push(p->backend, &p->send);
    if (error == 0) {
        error = region_push(p->backend, &p->receive);
    }
    if (error != 0) {
        return give_up(p, error, "filling the buffers");
    }
    return is_pio(p) ? 0 : dma_prepare(p);
}

static int point_check(struct pingpong *p, uint64_t last_turn)
{
    struct workload *w = p->workload;
    int error = region_pull(p->backend, &p->receive);
    if (error != 0) {
        return give_up(p, error, "fetching the receive buffer");
    }
    if (is_pio(p)) {
        turn_mix(p, &p->receive, last_turn);
    }
    long bad;
    if (region_check(&p->receive, p->offset, p->message, seed_of(p, 1 - w->rank), &bad)) {
        return 0;
    }
    w->fail(w->ctx, "ping-pong of %llu B: byte %ld of the receive buffer of rank %u is wrong",
            (unsigned long long)p->message, bad, w->rank);
    return -EBADMSG;
}

static void barrier(const struct pingpong *p)
{
    uint8_t mine = 0, theirs;
    p->workload->exchange(p->workload->ctx, &mine, &theirs, sizeof mine);
}

// Turns [first, first + count) of the point.
static int turns_run(struct pingpong *p, uint64_t first, uint64_t count)
{
    bool starts = p->workload->rank == 0;
    int error = 0;
    for (uint64_t turn = first; error == 0 && turn < first + count; turn++) {
        error = starts ? message_send(p, turn) : message_wait(p, turn);
        if (error == 0) {
            error = starts ? message_wait(p, turn) : message_send(p, turn);
        }
    }
    return error;
}

static int point_measure(struct pingpong *p)
{
    struct workload *w = p->workload;
    const struct backend *backend = p->backend;
    barrier(p);
    int error = turns_run(p, 0, w->warmup);
    if (error != 0) {
        return error;
    }
    uint64_t start_ps = w->rank == 0 ? backend->ops->time_ps(backend->ctx) : 0;
    error = turns_run(p, w->warmup, w->iterations);
    if (error != 0) {
        return error;
    }
    uint64_t end_ps = w->rank == 0 ? backend->ops->time_ps(backend->ctx) : 0;
    barrier(p); // the last message has arrived
    error = point_check(p, (uint64_t)w->warmup + w->iterations - 1);
    if (error == 0 && w->rank == 0) {
        uint64_t operations = 2 * (uint64_t)w->iterations;
        uint64_t mean_ps = (end_ps - start_ps) / operations;
        const struct workload_point point = {.bytes = p->message,
                                             .descriptors = p->descriptors,
                                             .operations = operations,
                                             .total_ps = end_ps - start_ps,
                                             .min_ps = mean_ps,
                                             .max_ps = mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

static int point_run(struct pingpong *p)
{
    int error = point_prepare(p);
    if (error == 0) {
        error = point_measure(p);
    }
    peach2_chain_destroy(p->chain);
    p->chain = NULL;
    p->point++;
    return error;
}

// --- the program ---------------------------------------------------------------------------------------------------

static int parameters_check(const struct pingpong *p)
{
    const struct workload *w = p->workload;
    if (w->ranks != 2) {
        w->fail(w->ctx, "a ping-pong needs two nodes, not %u", w->ranks);
        return -EINVAL;
    }
    if (is_pio(p) && w->source_gpu >= 0) {
        w->fail(w->ctx, "a ping-pong by PIO sends from host memory");
        return -EINVAL;
    }
    for (uint32_t i = 0; i < w->bytes_count; i++) {
        if (is_pio(p) && w->bytes[i] % 4 != 0) {
            w->fail(w->ctx, "a ping-pong by PIO needs a multiple of 4 B, not %llu B", (unsigned long long)w->bytes[i]);
            return -EINVAL;
        }
    }
    for (uint32_t i = 0; i < w->descriptors_count; i++) {
        bool chained = w->method == WORKLOAD_CHAIN_HOST || w->method == WORKLOAD_CHAIN_BOARD;
        if (!chained && w->descriptors[i] != 1) {
            w->fail(w->ctx, "a ping-pong of %llu descriptors needs a chain", (unsigned long long)w->descriptors[i]);
            return -EINVAL;
        }
    }
    return 0;
}

static int buffers_alloc(struct pingpong *p)
{
    const struct workload *w = p->workload;
    uint64_t descriptors = region_largest(w->descriptors, w->descriptors_count);
    size_t capacity = (size_t)(region_largest(w->bytes, w->bytes_count) * descriptors) + 8;
    int error = region_alloc_in(p->backend, w->source_gpu, capacity, &p->send);
    if (error == 0) {
        error = region_alloc_in(p->backend, w->destination_gpu, capacity, &p->receive);
    }
    if (error == 0) {
        error = region_alloc(p->backend, (size_t)descriptors * sizeof(struct peach2_transfer), &p->scratch);
    }
    if (error == 0) {
        error = p->backend->ops->alloc_pinned(p->backend->ctx, sizeof(uint64_t), &p->ack);
    }
    if (error != 0) {
        w->fail(w->ctx, "ping-pong: no memory for messages of %llu B: %s", (unsigned long long)capacity,
                strerror(-error));
    }
    return error;
}

static void buffers_free(struct pingpong *p)
{
    region_free(p->backend, &p->send);
    region_free(p->backend, &p->receive);
    region_free(p->backend, &p->scratch);
    if (p->ack.address != NULL) {
        p->backend->ops->free_pinned(p->backend->ctx, &p->ack);
    }
}

static int addresses_exchange(struct pingpong *p)
{
    const struct workload *w = p->workload;
    bool in_gpu = w->destination_gpu >= 0;
    const struct addresses mine = {in_gpu ? region_window_offset(&p->receive) : region_bus_address(&p->receive),
                                   p->ack.bus_address};
    struct addresses theirs;
    w->exchange(w->ctx, &mine, &theirs, sizeof mine);
    p->peer_receive =
        in_gpu ? peach2_gpu_window_address(w->board, w->peer_node, (uint32_t)w->destination_gpu, theirs.receive)
               : peach2_window_address(w->board, w->peer_node, theirs.receive);
    p->peer_ack = peach2_window_address(w->board, w->peer_node, theirs.ack);
    return p->peer_receive != 0 ? 0 : give_up(p, -ERANGE, "the window of the fabric does not reach the receive buffer");
}

int workload_pingpong(struct workload *workload)
{
    struct pingpong p = {.workload = workload, .backend = peach2_backend(workload->board)};
    int error = parameters_check(&p);
    if (error != 0) {
        return error;
    }
    error = buffers_alloc(&p);
    if (error == 0) {
        error = addresses_exchange(&p);
    }
    for (uint32_t d = 0; error == 0 && d < workload->descriptors_count; d++) {
        for (uint32_t b = 0; error == 0 && b < workload->bytes_count; b++) {
            p.bytes = workload->bytes[b];
            p.descriptors = workload->descriptors[d];
            error = point_run(&p);
        }
    }
    buffers_free(&p);
    return error;
}
