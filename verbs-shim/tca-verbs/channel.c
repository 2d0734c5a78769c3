// The two DMA channels: 2 for packets, with one write prepared while another runs; 3 for data that the board moves
// without the rings. Programs on libtca use channel 0.
#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/tca-verbs/internal.h"

enum { PACKETS = 2, MOVES };

// The maximum that one descriptor moves: the next part begins at the same low 4 bits.
#define RUN_BYTES_MAX (PEACH2_DMA_BYTES_MAX & ~0xfu)
#define RUNS_MAX      (TCAV_MESSAGE_BYTES_MAX / RUN_BYTES_MAX + 1)
#define BATCH_RUNS    (2 * TCAV_BATCH_SLOTS + 1) // and one for the notification

static volatile uint64_t *status_word(const struct tcav_context *context, unsigned channel)
{
    return (volatile uint64_t *)context->status.address + channel;
}

// --- the form of a chain ------------------------------------------------------------------------------------------------

static bool notifies_board(const struct tcav_context *context)
{
    return context->device->form.completion != TCA_VERBS_HOST;
}

bool tcav_channel_looks(const struct tcav_context *context)
{
    return context->ended;
}

static uint32_t ended_offset(const struct tcav_context *context)
{
    return context->ended_unit * TCA_BOARD_UNIT_BYTES;
}

uint32_t tcav_chain_flags(const struct tcav_context *context)
{
    return context->device->form.chain == TCA_VERBS_CHAIN_WAITS ? PEACH2_TRANSFER_FENCE : 0;
}

bool tcav_chain_end(const struct tcav_context *context, struct peach2_transfer *end_out)
{
    if (notifies_board(context)) {
        *end_out = (struct peach2_transfer){
            .source = context->status.bus_address + (uint64_t)tcaChannels * sizeof(uint64_t),
            .destination = peach2_board_memory_address(context->board, context->node, ended_offset(context)),
            .bytes = 8,
            .flags = tcav_chain_flags(context)};
    }
    return notifies_board(context);
}

// --- life -----------------------------------------------------------------------------------------------------------

// Creates a chain with empty transfers, which are replaced before it starts.
static int chain_make(struct tcav_context *context, uint32_t count, peach2_chain_t **chain_out)
{
    struct peach2_transfer transfers[RUNS_MAX] = {{0}};
    return peach2_chain_create(context->board, PEACH2_CHAIN_HOST, 0, transfers, count, chain_out);
}

_Static_assert(BATCH_RUNS < RUNS_MAX, "a batch fits the transfers of chain_make");

static int notify_prepare(struct tcav_context *context, unsigned channel, const peach2_chain_t *chain)
{
    const struct peach2_notify notify = {.local_address = context->status.bus_address + channel * 8ull, .value = 1};
    return peach2_chain_prepare(context->board, channel, chain, &notify);
}

static int chains_make(struct tcav_context *context)
{
    const struct backend *backend = &context->backend;
    // The word behind those of the channels is what a chain copies as its notification.
    int error = backend->ops->alloc_pinned(backend->ctx, (tcaChannels + 1) * sizeof(uint64_t), &context->status);
    if (error == 0) {
        *status_word(context, tcaChannels) = 1;
        context->has_unit = notifies_board(context) && tca_board_take(tca_context_current(), 1, &context->ended_unit);
        error = notifies_board(context) && !context->has_unit ? -ENOSPC : 0;
    }
    if (error == 0 && backend->ops->event_writes != NULL) {
        backend->ops->event_writes(backend->ctx, context->status.address, context->status.bytes);
    }
    for (unsigned i = 0; error == 0 && i < 2; i++) {
        error = chain_make(context, BATCH_RUNS + notifies_board(context), &context->batches[i]);
    }
    if (error == 0) {
        error = chain_make(context, RUNS_MAX, &context->moves);
    }
    if (error == 0) {
        error = notify_prepare(context, PACKETS, context->batches[0]);
    }
    return error == 0 ? notify_prepare(context, MOVES, context->moves) : error;
}

void tcav_channels_close(struct tcav_context *context)
{
    const struct backend *backend = &context->backend;
    for (unsigned i = 0; i < 2; i++) {
        peach2_chain_destroy(context->batches[i]);
        context->batches[i] = NULL;
    }
    peach2_chain_destroy(context->moves);
    context->moves = NULL;
    tca_channel_give(tca_context_current(), PACKETS);
    tca_channel_give(tca_context_current(), MOVES);
    if (context->has_unit) {
        tca_board_give(tca_context_current(), context->ended_unit, 1);
        context->has_unit = false;
    }
    if (context->status.address != NULL) {
        backend->ops->free_pinned(backend->ctx, &context->status);
        context->status.address = NULL;
    }
}

int tcav_channels_open(struct tcav_context *context)
{
    if (context->status.address != NULL) {
        return 0;
    }
    bool ours = tca_channel_take(tca_context_current(), PACKETS) && tca_channel_take(tca_context_current(), MOVES);
    int error = ours ? chains_make(context) : -EBUSY;
    if (error != 0) {
        tcav_channels_close(context);
    }
    return error;
}

// 0: the DMA ended. -EAGAIN: it runs. -EREMOTEIO: it ended with an error.
static int status_take(struct tcav_context *context, unsigned channel, unsigned *error_out)
{
    context->polls++;
    if (*status_word(context, channel) == 0) {
        return -EAGAIN;
    }
    return peach2_wait_status(context->board, status_word(context, channel), 0, NULL, error_out);
}

// The same of a chain of packets. Where it notifies the board, its end is its word there, which costs a load. Who looks lazily
// loads when the status is there, which is written behind the word: once, and not in each pass, whose time would depend on
// their number.
static int end_take(struct tcav_context *context, unsigned *error_out)
{
    int error = context->ended ? 0 : status_take(context, PACKETS, error_out);
    context->ended = error == 0;
    bool loads = context->device->form.completion == TCA_VERBS_AT_ONCE || context->ended;
    if (error == -EREMOTEIO || !notifies_board(context) || !loads) {
        return error;
    }
    uint64_t word;
    int refused = peach2_board_memory_read(context->board, ended_offset(context), &word);
    if (refused != 0 || word == 0 || !context->ended) {
        return refused != 0 ? -EREMOTEIO : -EAGAIN;
    }
    (void)peach2_board_memory_write(context->board, ended_offset(context), 0);
    return 0;
}

// --- packets --------------------------------------------------------------------------------------------------------

static bool is_looked_for(const struct tcav_context *context)
{
    return context->device->form.completion != TCA_VERBS_LAZY || context->ready != NULL || context->wants_end;
}

static void packets_start(struct tcav_context *context)
{
    context->sending = context->ready_peer;
    (void)peach2_chain_select(context->board, PACKETS, context->ready);
    context->ready = NULL;
    (void)peach2_dma_start(context->board, PACKETS);
}

static void packets_step(struct tcav_context *context)
{
    unsigned dma_error;
    if (context->sending != NULL && !is_looked_for(context)) {
        return;
    }
    if (context->sending != NULL) {
        int error = end_take(context, &dma_error);
        if (error == -EAGAIN) {
            return;
        }
        if (error != 0) {
            context->sending->state = TCAV_PEER_GONE;
        }
        tcav_pay_lines(context, sizeof(uint64_t));
        tcav_stir(context);
        context->sending = NULL;
        context->ended = false;
        context->chains_ended++;
    }
    if (context->ready != NULL) {
        packets_start(context);
        while (context->device->form.completion == TCA_VERBS_AT_ONCE && context->sending != NULL) {
            packets_step(context);
        }
    }
}

void tcav_channel_ready(struct tcav_peer *peer, peach2_chain_t *chain)
{
    struct tcav_context *context = peer->context;
    context->ready = chain;
    context->ready_peer = peer;
    context->chains++;
    packets_step(context);
}

bool tcav_channel_drain(struct tcav_context *context)
{
    uint64_t start_ps = tcav_now_ps(context);
    const uint64_t timeout_ps = PEACH2_DMA_TIMEOUT_NS * TCAV_NS;
    context->wants_end = true;
    while ((context->sending != NULL || context->ready != NULL) && tcav_now_ps(context) - start_ps < timeout_ps) {
        tcav_channels_step(context);
    }
    context->wants_end = false;
    return context->sending == NULL && context->ready == NULL;
}

// --- data -----------------------------------------------------------------------------------------------------------

uint32_t tcav_move_split(uint64_t offset, uint32_t bytes, uint32_t *before_out)
{
    uint32_t before = (uint32_t)(-offset & 3);
    *before_out = before < bytes ? before : bytes;
    return (bytes - *before_out) & ~3u;
}

static void move_start(struct tcav_context *context, struct tcav_move *move)
{
    struct peach2_transfer transfers[RUNS_MAX];
    uint32_t count = 0;
    for (uint32_t done = 0; done < move->bytes; count++) {
        uint32_t part = move->bytes - done < RUN_BYTES_MAX ? move->bytes - done : RUN_BYTES_MAX;
        transfers[count] = (struct peach2_transfer){
            .source = move->source + done, .destination = move->destination + done, .bytes = part};
        done += part;
    }
    move->running = true;
    context->moves_begun++;
    (void)peach2_chain_rewrite(context->moves, transfers, count);
    (void)peach2_chain_select(context->board, MOVES, context->moves);
    (void)peach2_dma_start(context->board, MOVES);
}

static void move_remove(struct tcav_context *context, struct tcav_move *move)
{
    struct tcav_move **link = &context->move;
    while (*link != move) {
        link = &(*link)->next;
    }
    *link = move->next;
    if (move->next == NULL) {
        context->moves_end = link;
    }
    move->queued = move->running = false;
}

static void moves_step(struct tcav_context *context)
{
    struct tcav_move *move = context->move;
    if (move != NULL && move->running) {
        unsigned dma_error = 0;
        if (status_take(context, MOVES, &dma_error) == -EAGAIN) {
            return;
        }
        tcav_stir(context);
        move->error = dma_error;
        *move->moved = true;
        move_remove(context, move);
        move = context->move;
    }
    if (move != NULL && !move->running) {
        move_start(context, move);
    }
}

void tcav_move_queue(struct tcav_context *context, struct tcav_move *move)
{
    tcav_stir(context);
    move->next = NULL;
    move->queued = true;
    context->repeats = false;
    move->error = 0;
    *context->moves_end = move;
    context->moves_end = &move->next;
    moves_step(context);
}

void tcav_move_cancel(struct tcav_context *context, struct tcav_move *move)
{
    if (!move->queued) {
        return;
    }
    if (move->running && !context->abandoned) {
        unsigned dma_error;
        (void)peach2_wait_status(context->board, status_word(context, MOVES), PEACH2_DMA_TIMEOUT_NS, NULL, &dma_error);
    }
    move_remove(context, move);
}

// The slowest path that is shared by all nodes moves a byte in less than that.
#define LATE_PS      (1000000 * TCAV_NS)
#define LATE_BYTE_PS (64 * TCAV_NS)

void tcav_moves_watch(struct tcav_context *context, uint64_t now_ps)
{
    context->moves_watched = context->moves_begun;
    context->watched_ps = now_ps;
}

uint64_t tcav_moves_late_ps(const struct tcav_context *context)
{
    const struct tcav_move *move = context->move;
    bool watched = move != NULL && move->running && context->moves_watched == context->moves_begun;
    return watched ? context->watched_ps + LATE_PS + move->bytes * LATE_BYTE_PS : UINT64_MAX;
}

bool tcav_channels_have_ended(const struct tcav_context *context, unsigned *polls)
{
    bool sends = context->sending != NULL && !context->ended && is_looked_for(context),
         moves = context->move != NULL && context->move->running;
    *polls += sends + moves;
    return (sends && *status_word(context, PACKETS) != 0) || (moves && *status_word(context, MOVES) != 0);
}

void tcav_channels_step(struct tcav_context *context)
{
    if (context->sending != NULL || context->ready != NULL) {
        packets_step(context);
    }
    if (context->move != NULL) {
        moves_step(context);
    }
}
