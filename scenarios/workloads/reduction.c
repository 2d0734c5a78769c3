#include "scenarios/workloads/reduction.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/workloads/hybrid.h"

#define LINE_BYTES 64u

// The links over InfiniBand: of a ring to the next and the previous rank, else one for each round.
enum { LINK_NEXT, LINK_PREVIOUS, RING_LINKS };

static uint32_t rounds_of(uint32_t ranks)
{
    uint32_t rounds = 0;
    while (1u << rounds < ranks) {
        rounds++;
    }
    return rounds;
}

// The numbers of a chunk of a ring: the first one, and behind the last one.
static uint64_t chunk_begin(const struct workload *w, uint64_t count, uint32_t chunk)
{
    return count * chunk / w->ranks;
}

static uint32_t wrapped(const struct workload *w, uint32_t rank, uint32_t back)
{
    return (rank + w->ranks - back % w->ranks) % w->ranks;
}

static int give_up(const struct reduction *reduction, int error, const char *what)
{
    struct workload *w = reduction->workload;
    w->fail(w->ctx, "%s: %s: %s", reduction->program, what, strerror(-error));
    return error;
}

// --- life ----------------------------------------------------------------------------------------------------------

static void slots_count(struct reduction *reduction)
{
    const struct workload *w = reduction->workload;
    switch (w->algorithm) {
    case WORKLOAD_RING:
        reduction->near_slots = reduction->far_slots = 2 * (w->ranks - 1);
        break;
    case WORKLOAD_DOUBLING:
        reduction->near_slots = reduction->far_slots = rounds_of(w->ranks);
        break;
    case WORKLOAD_HIERARCHICAL:
        reduction->near_slots = rounds_of(w->near_ranks) + 1; // and the result
        reduction->far_slots = rounds_of(w->places->sub_clusters);
        break;
    }
    reduction->near_slots += reduction->near_slots == 0;
    reduction->far_slots += reduction->far_slots == 0;
}

static int near_open(struct reduction *reduction, uint64_t bytes)
{
    struct workload *w = reduction->workload;
    size_t message = (size_t)bytes + sizeof(uint64_t);
    reduction->stride = (message + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    reduction->message = malloc(message);
    if (reduction->message == NULL) {
        return give_up(reduction, -ENOMEM, "a message");
    }
    if (!hybrid_has_near(w)) {
        return 0;
    }
    const struct backend *backend = reduction->backend;
    int error =
        backend->ops->alloc_pinned(backend->ctx, 2 * reduction->near_slots * reduction->stride, &reduction->near);
    if (error != 0) {
        return give_up(reduction, error, "pinned memory");
    }
    w->gather_near(w->ctx, &reduction->near.bus_address, reduction->near_addresses, sizeof reduction->near.bus_address);
    return 0;
}

static uint32_t far_or_none(const struct workload *w, uint32_t rank)
{
    return hybrid_is_near(w, rank) ? FAR_NONE : rank;
}

// Collective, also for ranks that have no link in a round.
static int links_connect(struct reduction *reduction)
{
    struct workload *w = reduction->workload;
    struct far *far = reduction->has_far ? &reduction->far : NULL;
    const struct workload_places *places = w->places;
    int error = 0;
    if (w->algorithm == WORKLOAD_RING) {
        return far_connect(far, w, LINK_NEXT, far_or_none(w, (w->rank + 1) % w->ranks), LINK_PREVIOUS,
                           far_or_none(w, wrapped(w, w->rank, 1)));
    }
    uint32_t own = places->sub_cluster_of[w->rank];
    bool leader = places->number_of[w->rank] == 0, doubling = w->algorithm == WORKLOAD_DOUBLING;
    uint32_t rounds = rounds_of(doubling ? w->ranks : places->sub_clusters);
    for (uint32_t round = 0; error == 0 && round < rounds; round++) {
        uint32_t peer = doubling ? far_or_none(w, w->rank ^ 1u << round)
                        : leader ? places->rank_at[(own ^ 1u << round) * WORKLOAD_NEAR_MAX]
                                 : FAR_NONE;
        error = far_connect(far, w, round, peer, round, peer);
    }
    return error;
}

int reduction_open(struct reduction *reduction, struct workload *workload, const char *program, uint64_t count)
{
    uint64_t largest = workload->algorithm == WORKLOAD_RING ? count / workload->ranks + 1 : count;
    *reduction = (struct reduction){.workload = workload,
                                    .backend = &backend_current()->backend,
                                    .program = program,
                                    .has_far = hybrid_has_far(workload)};
    slots_count(reduction);
    int error = near_open(reduction, largest * sizeof(uint64_t));
    if (error != 0 || !reduction->has_far) {
        return error;
    }
    uint32_t links = workload->algorithm == WORKLOAD_RING ? RING_LINKS : reduction->far_slots;
    error = far_open(&reduction->far, workload, program, links, 2 * reduction->far_slots, largest * sizeof(uint64_t));
    return error == 0 ? links_connect(reduction) : error;
}

void reduction_close(struct reduction *reduction)
{
    free(reduction->message);
    if (reduction->near.address != NULL) {
        reduction->backend->ops->free_pinned(reduction->backend->ctx, &reduction->near);
    }
    if (reduction->has_far) {
        far_close(&reduction->far);
    }
}

void reduction_clear(struct reduction *reduction)
{
    if (reduction->near.address != NULL) {
        memset(reduction->near.address, 0, 2 * reduction->near_slots * reduction->stride);
    }
    if (reduction->has_far) {
        memset(region_data(&reduction->far.receive), 0, reduction->far.receive.capacity);
    }
}

// --- messages ------------------------------------------------------------------------------------------------------

static uint32_t near_slot(const struct reduction *reduction, uint32_t slot)
{
    return (uint32_t)(reduction->sequence % 2) * reduction->near_slots + slot;
}

static uint32_t far_slot(const struct reduction *reduction, uint32_t slot)
{
    return (uint32_t)(reduction->sequence % 2) * reduction->far_slots + slot;
}

// A message of one line arrives as a whole; of a longer one the word is written behind the numbers.
static int near_send(struct reduction *reduction, uint32_t number, uint32_t slot, const uint64_t *numbers,
                     uint64_t count)
{
    const struct workload *w = reduction->workload;
    size_t bytes = count * sizeof *numbers;
    uint64_t to = peach2_window_address(
        w->board, number, reduction->near_addresses[number] + near_slot(reduction, slot) * reduction->stride);
    memcpy(reduction->message, numbers, bytes);
    reduction->message[count] = reduction->sequence;
    int error;
    if (bytes + sizeof *numbers <= LINE_BYTES) {
        error = peach2_pio_write(w->board, to, reduction->message, bytes + sizeof *numbers);
    } else {
        error = peach2_pio_write(w->board, to, reduction->message, bytes);
        if (error == 0) {
            error = peach2_pio_write(w->board, to + bytes, &reduction->message[count], sizeof *numbers);
        }
    }
    return error == 0 ? 0 : give_up(reduction, error, "sending by PIO");
}

static int near_receive(struct reduction *reduction, uint32_t slot, uint64_t count, const uint64_t **numbers_out)
{
    const struct backend *backend = reduction->backend;
    const uint64_t *numbers =
        (const uint64_t *)(void *)((char *)reduction->near.address + near_slot(reduction, slot) * reduction->stride);
    int error = backend->ops->wait_word(backend->ctx, numbers + count, UINT64_MAX, reduction->sequence, 0);
    *numbers_out = numbers;
    return error == 0 ? 0 : give_up(reduction, error, "waiting for a message by PIO");
}

static int send_to(struct reduction *reduction, uint32_t rank, uint32_t link, uint32_t slot, const uint64_t *numbers,
                   uint64_t count)
{
    const struct workload *w = reduction->workload;
    if (hybrid_is_near(w, rank)) {
        return near_send(reduction, hybrid_number(w, rank), slot, numbers, count);
    }
    uint32_t at = far_slot(reduction, slot);
    memcpy(far_send_data(&reduction->far, at), numbers, count * sizeof *numbers);
    return far_send(&reduction->far, link, at, at, count * sizeof *numbers, reduction->sequence);
}

static int receive_from(struct reduction *reduction, uint32_t rank, uint32_t slot, uint64_t count,
                        const uint64_t **numbers_out)
{
    if (hybrid_is_near(reduction->workload, rank)) {
        return near_receive(reduction, slot, count, numbers_out);
    }
    uint32_t at = far_slot(reduction, slot);
    *numbers_out = (const uint64_t *)(const void *)far_received_data(&reduction->far, at);
    return far_wait(&reduction->far, at, count * sizeof(uint64_t), reduction->sequence);
}

static void take(struct reduction *reduction, uint64_t *numbers, const uint64_t *theirs, uint64_t count, bool add)
{
    const struct backend *backend = reduction->backend;
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = add ? numbers[i] + theirs[i] : theirs[i];
    }
    backend->ops->cost(backend->ctx, BACKEND_COST_COPY, count * sizeof *numbers);
}

// --- the algorithms ------------------------------------------------------------------------------------------------

// Both send, then add.
static int swap_and_add(struct reduction *reduction, uint32_t peer, uint32_t slot, uint64_t *numbers, uint64_t count)
{
    const uint64_t *theirs = NULL;
    int error = send_to(reduction, peer, slot, slot, numbers, count);
    if (error == 0) {
        error = receive_from(reduction, peer, slot, count, &theirs);
    }
    if (error == 0) {
        take(reduction, numbers, theirs, count, true);
    }
    return error;
}

static int doubling_run(struct reduction *reduction, uint64_t *numbers, uint64_t count)
{
    const struct workload *w = reduction->workload;
    int error = 0;
    for (uint32_t round = 0; error == 0 && 1u << round < w->ranks; round++) {
        error = swap_and_add(reduction, w->rank ^ 1u << round, round, numbers, count);
    }
    return error;
}

// One step around the ring: sends one chunk, and adds or takes another one.
static int ring_step(struct reduction *reduction, uint32_t step, uint64_t *numbers, uint64_t count)
{
    const struct workload *w = reduction->workload;
    bool adds = step < w->ranks - 1;
    uint32_t sent = adds ? wrapped(w, w->rank, step) : wrapped(w, w->rank + 1, step - (w->ranks - 1));
    uint32_t taken = wrapped(w, sent, 1);
    uint64_t begin = chunk_begin(w, count, sent), end = chunk_begin(w, count, sent + 1);
    int error = 0;
    if (end > begin) {
        error = send_to(reduction, (w->rank + 1) % w->ranks, LINK_NEXT, step, numbers + begin, end - begin);
    }
    begin = chunk_begin(w, count, taken);
    end = chunk_begin(w, count, taken + 1);
    if (error == 0 && end > begin) {
        const uint64_t *theirs = NULL;
        error = receive_from(reduction, wrapped(w, w->rank, 1), step, end - begin, &theirs);
        if (error == 0) {
            take(reduction, numbers + begin, theirs, end - begin, adds);
        }
    }
    return error;
}

static int ring_run(struct reduction *reduction, uint64_t *numbers, uint64_t count)
{
    int error = 0;
    for (uint32_t step = 0; error == 0 && step < 2 * (reduction->workload->ranks - 1); step++) {
        error = ring_step(reduction, step, numbers, count);
    }
    return error;
}

// From the first node to all of its sub-cluster, along a binomial tree: a node that has the result passes it to the one
// whose number differs in the next lower bit.
static int result_pass_on(struct reduction *reduction, uint32_t slot, uint64_t *numbers, uint64_t count)
{
    const struct workload *w = reduction->workload;
    uint32_t own = hybrid_number(w, w->rank), rounds = rounds_of(w->near_ranks), below = rounds;
    int error = 0;
    if (own != 0) {
        const uint64_t *theirs = NULL;
        below = (uint32_t)__builtin_ctz(own); // lower bits are this node's to pass on
        error = near_receive(reduction, slot, count, &theirs);
        if (error == 0) {
            take(reduction, numbers, theirs, count, false);
        }
    }
    for (uint32_t round = below; error == 0 && round-- > 0;) {
        error = near_send(reduction, own | 1u << round, slot, numbers, count);
    }
    return error;
}

static int hierarchical_run(struct reduction *reduction, uint64_t *numbers, uint64_t count)
{
    const struct workload *w = reduction->workload;
    const struct workload_places *places = w->places;
    uint32_t sub_cluster = places->sub_cluster_of[w->rank], own = hybrid_number(w, w->rank);
    uint32_t near_rounds = rounds_of(w->near_ranks);
    int error = 0;
    for (uint32_t round = 0; error == 0 && round < near_rounds; round++) {
        uint32_t peer = places->rank_at[sub_cluster * WORKLOAD_NEAR_MAX + (own ^ 1u << round)];
        error = swap_and_add(reduction, peer, round, numbers, count);
    }
    for (uint32_t round = 0; error == 0 && own == 0 && 1u << round < places->sub_clusters; round++) {
        uint32_t peer = places->rank_at[(sub_cluster ^ 1u << round) * WORKLOAD_NEAR_MAX];
        error = swap_and_add(reduction, peer, round, numbers, count);
    }
    return error == 0 && reduction->has_far ? result_pass_on(reduction, near_rounds, numbers, count) : error;
}

int reduction_run(struct reduction *reduction, uint64_t *numbers, uint64_t count)
{
    int error = 0;
    reduction->sequence++;
    switch (reduction->workload->algorithm) {
    case WORKLOAD_RING:
        error = ring_run(reduction, numbers, count);
        break;
    case WORKLOAD_DOUBLING:
        error = doubling_run(reduction, numbers, count);
        break;
    case WORKLOAD_HIERARCHICAL:
        error = hierarchical_run(reduction, numbers, count);
        break;
    }
    return error == 0 && reduction->has_far ? far_flush(&reduction->far) : error;
}
